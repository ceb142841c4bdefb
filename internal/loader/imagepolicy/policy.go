package imagepolicy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Purpose is the purpose of an image.
type Purpose string

// Purposes of images.
const (
	Package    Purpose = "Package"
	Repository Purpose = "Repository"
)

// Mode is the consequence of a failed verification.
type Mode string

// Modes of a Verification.
const (
	Enforce Mode = "Enforce"
	Warn    Mode = "Warn"
)

// Policy is the content of one ImageConfig, with its keys and roots read.
type Policy struct {
	Name     string
	Prefixes []string
	// Rewrite replaces the prefix that matched; empty means no rewrite.
	Rewrite string
	// PullSecret is the name of a Secret in the manager's namespace; empty if there is none.
	PullSecret string
	// Verification is nil if the images need no signature.
	Verification *Verification
}

// Verification defines the signatures that images need.
type Verification struct {
	Mode        Mode
	Purposes    []Purpose
	Authorities []Authority
}

// key identifies everything besides the image that the outcome of a verification depends on.
func (v *Verification) key(now time.Time) string {
	parts := make([]any, 0, len(v.Authorities)+1)
	parts = append(parts, v.Mode)
	for i := range v.Authorities {
		a := &v.Authorities[i]
		input := fmt.Sprintf("%s %s %s", a.source, stamp(a.notBefore), stamp(a.notAfter))
		parts = append(parts, []any{a.Name, a.problem, input, a.valid(now)})
	}
	return hashOf(parts...)[:32]
}

// aspect is one purpose, which has its own longest prefix.
type aspect string

const (
	// Each is looked up on its own: one ImageConfig can rewrite all images of a registry, and
	// another one verify some of them.
	rewriting   aspect = "rewrite"
	credentials aspect = "pullSecretRef"
)

// verifying returns the aspect of verifying images for a purpose.
func verifying(p Purpose) aspect { return aspect("verification of " + string(p) + " images") }

// has reports whether a policy decides about an aspect.
func (p *Policy) has(a aspect) bool {
	switch a {
	case rewriting:
		return p.Rewrite != ""
	case credentials:
		return p.PullSecret != ""
	}
	return p.Verification != nil && slices.ContainsFunc(p.Verification.Purposes, func(purpose Purpose) bool { return verifying(purpose) == a })
}

// aspects are all aspects of policies.
var aspects = []aspect{rewriting, credentials, verifying(Package), verifying(Repository)}

// Set is all policies of a cluster. It is immutable. A nil Set is empty.
type Set struct {
	// rules are sorted by prefix, longest first, and then by name.
	rules    []rule
	required bool
	now      time.Time
}

// rule is a policy at one of its prefixes.
type rule struct {
	prefix string
	*Policy
	// target is Rewrite in the form of prefixes. broken is why it is invalid.
	target string
	broken error
}

// NewSet returns the policies that apply at a moment. If verification is required, it refuses
// images of packages and repositories that no policy verifies.
func NewSet(policies []Policy, required bool, now time.Time) *Set {
	s := &Set{required: required, now: now}
	for i := range policies {
		p := &policies[i]
		target, broken := ParsePrefix(p.Rewrite)
		for _, written := range p.Prefixes {
			if prefix, err := ParsePrefix(written); err == nil {
				s.rules = append(s.rules, rule{prefix: prefix, Policy: p, target: target, broken: broken})
			}
		}
	}

	slices.SortFunc(s.rules, func(a, b rule) int {
		return cmp.Or(cmp.Compare(len(b.prefix), len(a.prefix)), cmp.Compare(a.prefix, b.prefix), cmp.Compare(a.Name, b.Name))
	})
	s.rules = slices.CompactFunc(s.rules, func(a, b rule) bool { return a.prefix == b.prefix && a.Name == b.Name })
	return s
}

// find returns the policy for an aspect of a repository and the prefix that matched, or why there
// is a conflict.
func (s *Set) find(repository string, a aspect) (*rule, *Refusal) {
	for i := range s.rules {
		found := &s.rules[i]
		if !found.has(a) || !hasPrefix(repository, found.prefix) {
			continue
		}
		for _, next := range s.rules[i+1:] {
			if next.prefix == found.prefix && next.has(a) {
				return nil, conflictOf(found.prefix, a, found.Name, next.Name)
			}
		}
		return found, nil
	}

	return nil, nil
}

// conflictOf explains why no policy decides. Choosing one by its name would silently weaken the
// other.
func conflictOf(prefix string, a aspect, names ...string) *Refusal {
	return &Refusal{Reason: ReasonConflicting, Message: fmt.Sprintf(
		"the ImageConfigs %s have the same prefix %s, and each has %s; remove it from all but one", strings.Join(names, " and "), prefix, a)}
}

// Conflicts returns, by the names of policies, why two with the same prefix conflict.
func (s *Set) Conflicts() map[string]string {
	conflicts := map[string]string{}
	for i := 1; i < len(s.rules); i++ {
		for j := i - 1; j >= 0 && s.rules[j].prefix == s.rules[i].prefix; j-- {
			for _, a := range aspects {
				if first, second := s.rules[j], s.rules[i]; first.has(a) && second.has(a) {
					text := conflictOf(first.prefix, a, first.Name, second.Name).Message
					conflicts[first.Name] = cmp.Or(conflicts[first.Name], text)
					conflicts[second.Name] = cmp.Or(conflicts[second.Name], text)
				}
			}
		}
	}

	return conflicts
}

// Decision is the policies' decision about one image.
type Decision struct {
	// Pull is the reference to pull. Rewritten means that a policy replaced the original reference.
	Pull      string
	Rewritten bool
	Rewriter  string
	// PullSecret is the name of a Secret in the manager's namespace; empty if there is none.
	PullSecret string
	// Policy is the name of the policy with the Verification, which is nil if no signature is
	// needed.
	Policy       string
	Verification *Verification
	// Refusal is why the image must not be used regardless of its signature; otherwise nil.
	Refusal *Refusal
	key     string
	// VerificationKey identifies the Verification with its keys and roots. Only Decide sets it.
	VerificationKey string
}

// Key identifies the whole decision about the image. It is empty if no policy applies.
func (d *Decision) Key() string { return d.key }

// WithoutImage returns why content without an image must not be used, or nil if it can be.
func (s *Set) WithoutImage() *Refusal {
	if s == nil || !s.required {
		return nil
	}
	return &Refusal{Reason: ReasonNoPolicy, Message: "a repository has the content of the package without an image, which cannot be signed, and the manager requires " +
		"verification (--require-verification); offer it as an image"}
}

// Decide returns the policies' decision about an image, by its reference as written.
func (s *Set) Decide(image string, purpose Purpose) Decision {
	d := Decision{Pull: image}
	if s == nil {
		return d
	}

	repository, rest, ok := split(image)
	if !ok {
		// Another program could parse it differently, and pull an image that a policy applies to.
		if image != "" && (s.required || len(s.rules) > 0) {
			d.Refusal = &Refusal{Reason: ReasonInvalidReference, Message: "its reference cannot be compared with ImageConfigs; write it as HOST/PATH:TAG or HOST/PATH@sha256:…"}
			d.key = " refused: " + d.Refusal.Error()
		}
		return d
	}

	d.decidePull(s, repository, rest)
	found, conflict := s.find(repository, verifying(purpose))
	switch {
	case conflict != nil:
		d.Refusal = conflict
	case found != nil:
		d.Policy, d.Verification = found.Name, found.Verification
		d.VerificationKey = found.Verification.key(s.now)
		d.key += " by " + found.Name + " verified by " + d.VerificationKey
	case s.required && d.Refusal == nil:
		d.Refusal = &Refusal{Reason: ReasonNoPolicy, Message: "no ImageConfig verifies it, and the manager requires verification (--require-verification); " +
			"ask an administrator for an ImageConfig with a prefix of it"}
	}

	if d.Refusal != nil {
		d.key += " refused: " + d.Refusal.Error()
	}

	return d
}

// decidePull sets the reference to pull, its secret, and a refusal if two policies conflict.
func (d *Decision) decidePull(s *Set, repository, rest string) {
	found, refusal := s.rewriting(repository)
	if found != nil {
		d.Pull, d.Rewritten, d.Rewriter = found.rewrite(d.Pull, repository, rest), true, found.Name
		d.key += " from " + d.Pull
	}
	secret, other := s.find(repository, credentials)
	if secret != nil {
		d.PullSecret = secret.PullSecret
		d.key += " with " + d.PullSecret
	}
	d.Refusal = cmp.Or(refusal, other)
}

// rewriting returns the policy that rewrites references of a repository, or why there is a
// conflict.
func (s *Set) rewriting(repository string) (*rule, *Refusal) {
	found, conflict := s.find(repository, rewriting)
	if found == nil {
		return nil, conflict
	}
	if found.broken != nil {
		return nil, &Refusal{Reason: ReasonInvalidPrefix, Message: fmt.Sprintf("rewrite.prefix %s of the ImageConfig %s: %v", found.Rewrite, found.Name, found.broken)}
	}
	return found, nil
}

// rewrite returns an image as the policy rewrites it. If the image already has a target below the
// prefix, it stays unchanged.
func (r *rule) rewrite(image, repository, rest string) string {
	if hasPrefix(r.target, r.prefix) && hasPrefix(repository, r.target) {
		return image
	}
	return strings.TrimSuffix(r.Rewrite, "/") + strings.TrimPrefix(repository, r.prefix) + rest
}

// Rewrite returns the reference to pull instead of an image, which is the image itself if no policy
// rewrites it. The result is not looked up again.
func (s *Set) Rewrite(image string) string { return s.rewriteUnless(image, nil) }

// RewriteInObject is Rewrite for an image of a container or an image volume. A single name without
// a host, such as "auto", can be a placeholder that a webhook replaces, or an image of the cluster.
// It is rewritten only by a policy whose prefix is a path of Docker Hub.
func (s *Set) RewriteInObject(image string) string {
	return s.rewriteUnless(image, func(r *rule) bool { return r.prefix == dockerHub && !strings.Contains(image, "/") })
}

// rewriteUnless rewrites an image unless the rule is excepted. An unreadable reference stays as it
// is: Decide refuses it.
func (s *Set) rewriteUnless(image string, except func(*rule) bool) string {
	if s == nil {
		return image
	}
	repository, rest, ok := split(image)
	if !ok {
		return image
	}
	if found, _ := s.rewriting(repository); found != nil && (except == nil || !except(found)) {
		return found.rewrite(image, repository, rest)
	}
	return image
}

// Key identifies all of the policies.
func (s *Set) Key() string {
	parts := []any{s.required}
	for i := range s.rules {
		parts = append(parts, s.rules[i].key(s.now))
	}
	return hashOf(parts...)
}

// rewritesIn names the fields of a package that are rewritten. A version that rewrites more has to
// change it, so that packages are loaded again at the upgrade instead of at some later time.
const rewritesIn = "locks and objects"

// RewriteKey identifies how the policies change references of images that packages name. It is
// empty if they do not.
func (s *Set) RewriteKey() string {
	var parts []any
	if s != nil {
		for i := range s.rules {
			if r := &s.rules[i]; r.has(rewriting) {
				parts = append(parts, []string{r.prefix, r.Rewrite})
			}
		}
	}
	if parts == nil {
		return ""
	}
	return hashOf(append(parts, rewritesIn)...)
}

// key identifies the rule with everything that its decisions depend on.
func (r *rule) key(now time.Time) []string {
	parts := []string{r.prefix, r.Name, r.Rewrite, r.PullSecret}
	if r.Verification != nil {
		parts = append(parts, fmt.Sprint(r.Verification.Purposes), r.Verification.key(now))
	}
	return parts
}

// Turns returns when a key of the policies next becomes valid or expires; zero means never.
func (s *Set) Turns() time.Time {
	var next time.Time
	for i := range s.rules {
		if s.rules[i].Verification == nil {
			continue
		}
		for j := range s.rules[i].Verification.Authorities {
			if t := s.rules[i].Verification.Authorities[j].turns(s.now); !t.IsZero() && (next.IsZero() || t.Before(next)) {
				next = t
			}
		}
	}
	return next
}

// Problem returns why a policy, or a part of it, is unusable, or an empty reason.
func (p *Policy) Problem() (reason Reason, problem string) {
	for _, prefix := range p.Prefixes {
		if _, err := ParsePrefix(prefix); err != nil {
			return ReasonInvalidPrefix, fmt.Sprintf("the prefix %s: %v", prefix, err)
		}
	}

	if p.Rewrite != "" {
		if _, err := ParsePrefix(p.Rewrite); err != nil {
			return ReasonInvalidPrefix, fmt.Sprintf("rewrite.prefix %s: %v", p.Rewrite, err)
		}
	}

	if p.Verification == nil {
		return "", ""
	}

	for i := range p.Verification.Authorities {
		if a := &p.Verification.Authorities[i]; a.problem != "" {
			return ReasonTrustRootInvalid, fmt.Sprintf("the authority %s cannot be used: %s", a.Name, a.problem)
		}
	}

	return "", ""
}
