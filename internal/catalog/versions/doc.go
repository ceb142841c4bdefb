// Package versions chooses a version of a package. It is pure: it takes candidates and a request,
// and returns a choice with its explanation.
//
//	candidates ─► prereleases ─► platforms ─► constraint ─► installable, not retracted ─► highest ─► downgrade gate
//
// Constraints have the syntax of github.com/Masterminds/semver/v3, with "==" read as "=", and a
// lone "!" as "!=". There are these differences:
//
//   - Whether a prerelease takes part depends on the selection's prereleases, not on prereleases in
//     a range. A constraint that is a single prerelease, such as 1.2.0-rc.1, always selects it.
//   - Ranges ignore build metadata. An exact version with build metadata matches only the same
//     text.
//   - Versions of equal precedence are ordered by build metadata, so that the choice never depends
//     on the order of the candidates.
//   - The empty constraint is any release.
//
// A version that was chosen before is never replaced by a lower one unless the request allows it.
// Versions of platforms are compared without prerelease and build metadata. Limits:
// limits.TemplatePatternBytes of a constraint, limits.ConstraintGroups and ConstraintTerms,
// limits.NearestVersions in a message.
package versions
