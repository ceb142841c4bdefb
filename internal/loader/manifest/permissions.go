package manifest

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/internal/permissions"
)

// PermissionsPhase is the phase of the roles for spec.permissions. It comes before all phases of
// the manifest.
const PermissionsPhase = "permissions"

// These are the user roles that spec.permissions.aggregateTo can name.
const (
	AggregateToAdmin = "admin"
	AggregateToEdit  = "edit"
	AggregateToView  = "view"
)

// Rules returns the rights that the workload of a package requires.
func Rules(p *manifestsv1alpha1.PackageManifestPermissions) []rbacv1.PolicyRule {
	if p == nil {
		return nil
	}
	var rules []rbacv1.PolicyRule
	for _, rule := range p.Rules {
		rules = append(rules, rbacv1.PolicyRule(rule))
	}
	return rules
}

// permissions checks spec.permissions. Its roles get a phase of their own, so no phase of the
// manifest can have that name.
func (c *checker) permissions(spec *manifestsv1alpha1.PackageManifestSpec) {
	const at = "spec.permissions."
	p := spec.Permissions
	if p == nil {
		return
	}

	for i, phase := range spec.Phases {
		if phase.Name == PermissionsPhase {
			c.invalid(fmt.Sprintf("spec.phases[%d].name", i), "Choose another name.", "the phase of the roles of spec.permissions has the name %q", PermissionsPhase)
		}
	}

	switch errs := validation.IsDNS1123Subdomain(p.ServiceAccountName); {
	case len(p.Rules) == 0 && p.ServiceAccountName != "":
		c.invalid(at+"serviceAccountName", "List the rules, or remove it.", "there are no rules to grant to it")
	case len(p.Rules) > 0 && p.ServiceAccountName == "":
		c.invalid(at+"serviceAccountName", "Name the ServiceAccount of the workload.", "Required value")
	case len(p.Rules) > 0 && len(errs) > 0:
		c.invalid(at+"serviceAccountName", "", "%.100q is not a valid ServiceAccount name: %s", p.ServiceAccountName, errs[0])
	}

	c.rules(at+"rules", p.Rules)
	seen := map[string]bool{}
	for i, role := range p.AggregateTo {
		field := fmt.Sprintf(at+"aggregateTo[%d]", i)
		c.oneOf(c.invalid, field, role, AggregateToAdmin, AggregateToEdit, AggregateToView)
		c.unique(seen, field, role)
	}
}

// rules checks rules as the API server checks roles, and bounds the single rights that comparing
// them with a ceiling expands to.
func (c *checker) rules(at string, rules []manifestsv1alpha1.PackageManifestPolicyRule) {
	if len(rules) > limits.PermissionRules {
		c.add(violation.ReasonLimit, at, "Put those with the same verbs together.", "%d rules; the limit is %d", len(rules), limits.PermissionRules)
		return
	}

	rights := 0
	for i, rule := range rules {
		field := fmt.Sprintf("%s[%d]", at, i)
		if len(rule.Verbs) == 0 {
			c.invalid(field+".verbs", "", "Required value")
		}
		if (len(rule.Resources) == 0) == (len(rule.NonResourceURLs) == 0) {
			c.invalid(field, "", "exactly one of resources and nonResourceURLs is needed")
		}
		if len(rule.Resources) > 0 && len(rule.APIGroups) == 0 {
			c.invalid(field+".apiGroups", `Write "" for the core group.`, "Required value")
		}
		if len(rule.NonResourceURLs) > 0 && len(rule.APIGroups)+len(rule.ResourceNames) > 0 {
			c.invalid(field, "Write two rules.", "nonResourceURLs have no apiGroups and resourceNames")
		}
		for name, values := range map[string][]string{
			"verbs": rule.Verbs, "resources": rule.Resources, "resourceNames": rule.ResourceNames, "nonResourceURLs": rule.NonResourceURLs,
		} {
			if j := slices.Index(values, ""); j >= 0 {
				c.invalid(fmt.Sprintf("%s.%s[%d]", field, name, j), "", "Required value")
			}
		}
		rights += permissions.Size(rbacv1.PolicyRule(rule))
	}

	if rights > limits.PermissionRights {
		c.add(violation.ReasonLimit, at, `Require fewer, or write verbs or resources as "*".`, "%d single rights; the limit is %d", rights, limits.PermissionRights)
	}
}
