package manifest

import (
	"fmt"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/loader/violation"
)

// permissions checks permissions, which are not granted yet.
func (c *checker) permissions(p *manifestsv1alpha1.PackageManifestPermissions) {
	if p == nil {
		return
	}
	for i, rule := range p.Rules {
		field := fmt.Sprintf("spec.permissions.rules[%d]", i)
		if len(rule.Verbs) == 0 {
			c.invalid(field+".verbs", "", "Required value")
		}
		if (len(rule.Resources) == 0) == (len(rule.NonResourceURLs) == 0) {
			c.invalid(field, "", "exactly one of resources and nonResourceURLs is needed")
		}
		if len(rule.Resources) > 0 && len(rule.APIGroups) == 0 {
			c.invalid(field+".apiGroups", `Write "" for the core group.`, "Required value")
		}
	}
	for i, role := range p.AggregateTo {
		c.oneOf(c.invalid, fmt.Sprintf("spec.permissions.aggregateTo[%d]", i), role, "admin", "edit", "view")
	}
	const details = "permissions are not granted yet"
	if c.r.Strict {
		c.add(violation.ReasonUnsupported, "spec.permissions", "Remove it and bring Roles or ClusterRoles in the package, or use a later version.", details)
		return
	}
	c.unsupportedWarning("spec.permissions", details)
}
