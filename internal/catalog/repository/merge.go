package repository

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/Masterminds/semver/v3"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/limits"
)

// Offer is the offer of one repository, with the properties that decide between repositories.
type Offer struct {
	// Repository is its name.
	Repository string
	Priority   int32
	// Limited is set if some namespaces do not see the repository.
	Limited bool
	Created time.Time
	Content *Content
}

// Merge returns the AvailablePackages of all offers, sorted by name and part, each of at most
// limits.AvailablePartBytes as JSON. existing are the present ones, in any order.
//
// If several repositories offer a version, the highest revision wins. If the remaining contents
// differ, the highest priority wins, and then the present owner or else the oldest repository.
// Among repositories with equal content, the present owner keeps the version, or else the oldest
// one gets it. If the winner is a limited repository, the winner for all other namespaces follows
// it. conflicts lists by repository the versions that it offers with other content although
// revision and priority are equal, and those that are too large.
func Merge(offers []Offer, existing []corev1alpha1.AvailablePackageSpec) (available []corev1alpha1.AvailablePackageSpec, conflicts map[string][]string) {
	m := merger{owners: ownersOf(existing), conflicts: map[string][]string{}}
	offers = slices.SortedFunc(slices.Values(offers), func(a, b Offer) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Repository, b.Repository))
	})
	byName := map[string][]claim{}
	for i := range offers {
		if offers[i].Content == nil {
			continue
		}
		for j := range offers[i].Content.Packages {
			p := &offers[i].Content.Packages[j]
			byName[p.Name] = append(byName[p.Name], claim{offer: &offers[i], pkg: p})
		}
	}

	for _, name := range slices.Sorted(maps.Keys(byName)) {
		available = append(available, m.merge(name, byName[name])...)
	}

	for repository, texts := range m.conflicts {
		if n := len(texts) - limits.RepositoryProblems; n > 0 {
			m.conflicts[repository] = append(texts[:limits.RepositoryProblems:limits.RepositoryProblems], fmt.Sprintf("%d more conflicts are not shown", n))
		}
	}

	return available, m.conflicts
}

// merger keeps the present owners and the conflicts of one merge.
type merger struct {
	owners    map[ownedVersion][]string
	conflicts map[string][]string
}

// ownedVersion is a version of a package, as the key of its owners.
type ownedVersion struct{ name, version string }

// ownersOf returns the repositories with published versions, in their order.
func ownersOf(existing []corev1alpha1.AvailablePackageSpec) map[ownedVersion][]string {
	owners := map[ownedVersion][]string{}
	existing = slices.SortedStableFunc(slices.Values(existing), func(a, b corev1alpha1.AvailablePackageSpec) int { return cmp.Compare(a.Part, b.Part) })
	for i := range existing {
		for j := range existing[i].Versions {
			v := &existing[i].Versions[j]
			key := ownedVersion{existing[i].PackageName, v.Version}
			owners[key] = append(owners[key], v.Repository)
		}
	}
	return owners
}

// claim is a version, or the whole package, as one repository offers it.
type claim struct {
	offer   *Offer
	pkg     *Package
	version *corev1alpha1.AvailableVersion
	order   *semver.Version
	// content is compared with other claims' contents. losers have different content, but an equal
	// right.
	content string
	losers  []claim
}

// merge returns the parts of the package that claims offer, starting with the oldest repository.
func (m *merger) merge(name string, claims []claim) []corev1alpha1.AvailablePackageSpec {
	byVersion := map[string][]claim{}
	for _, c := range claims {
		for i := range c.pkg.Versions {
			c.version = &c.pkg.Versions[i]
			order, err := semver.StrictNewVersion(c.version.Version)
			if err != nil {
				m.conflict(c, "it is not a semantic version")
				continue
			}
			c.order = order
			byVersion[c.version.Version] = append(byVersion[c.version.Version], c)
		}
	}

	winners := make([]claim, 0, len(byVersion))
	for version, claims := range byVersion {
		winners = append(winners, decide(claims, m.owners[ownedVersion{name, version}])...)
	}

	slices.SortStableFunc(winners, func(a, b claim) int { return versions.Compare(a.order, b.order) })
	for _, winner := range winners {
		for _, loser := range winner.losers {
			m.conflict(loser, fmt.Sprintf("the repository %q offers it with another content, which is chosen, because revisions and priorities are equal: "+
				"set spec.priority of one of the two, or withdraw the version from one", winner.offer.Repository))
		}
	}

	return m.shard(name, winners)
}

// decide returns the claims to offer among those on one version, which start with the oldest
// repository: the best one and, if that is limited, the best of the others behind it.
func decide(claims []claim, owners []string) []claim {
	var winners []claim
	for lost := map[*Offer]bool{}; ; {
		winner := best(claims, owners)
		winner.losers = slices.DeleteFunc(winner.losers, func(c claim) bool { return lost[c.offer] })
		winners = append(winners, winner)
		claims = slices.DeleteFunc(slices.Clone(claims), func(c claim) bool { return c.offer == winner.offer })
		if !winner.offer.Limited || len(claims) == 0 {
			return winners
		}
		for _, loser := range winner.losers {
			lost[loser.offer] = true
		}
	}
}

// best returns the winner among claims on one version, which start with the oldest repository.
func best(claims []claim, owners []string) claim {
	if len(claims) == 1 {
		return claims[0]
	}

	claims = topmost(claims, func(a, b claim) int { return CompareRevisions(a.version.Revision, b.version.Revision) })
	for i := range claims {
		bare := *claims[i].version // without its owner and revision
		bare.Repository, bare.Revision = "", ""
		data, _ := json.Marshal(bare)
		claims[i].content = string(data)
	}

	candidates := claims
	if _, differ := byContent(claims, claims[0].content); len(differ) > 0 {
		candidates = topmost(claims, func(a, b claim) int { return cmp.Compare(a.offer.Priority, b.offer.Priority) })
	}

	content := present(candidates, owners).content
	equal, _ := byContent(claims, content)
	winner := present(equal, owners)
	_, winner.losers = byContent(candidates, content)
	return winner
}

// conflict records why a repository's version is not offered.
func (m *merger) conflict(c claim, why string) {
	m.conflicts[c.offer.Repository] = append(m.conflicts[c.offer.Repository], fmt.Sprintf("%s %s: %s", c.pkg.Name, c.version.Version, why))
}

// topmost returns the claims with the highest rank, in their order.
func topmost(claims []claim, compare func(a, b claim) int) []claim {
	var out []claim
	for _, c := range claims {
		if len(out) > 0 {
			switch d := compare(c, out[0]); {
			case d < 0:
				continue
			case d > 0:
				out = nil
			}
		}
		out = append(out, c)
	}

	return out
}

// byContent separates the claims with a content from the others.
func byContent(claims []claim, content string) (equal, differ []claim) {
	for _, c := range claims {
		if c.content == content {
			equal = append(equal, c)
		} else {
			differ = append(differ, c)
		}
	}
	return equal, differ
}

// present returns the claim of the first present owner, or else the first claim.
func present(claims []claim, owners []string) claim {
	for _, owner := range owners {
		if i := slices.IndexFunc(claims, func(c claim) bool { return c.offer.Repository == owner }); i >= 0 {
			return claims[i]
		}
	}
	return claims[0]
}
