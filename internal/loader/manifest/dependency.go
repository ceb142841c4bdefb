package manifest

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/loader/violation"
)

func (c *checker) repositories(spec *manifestsv1alpha1.PackageManifestSpec) {
	for i, r := range spec.Repositories {
		if (r.File == "") == (r.Image == "") {
			c.doubtful(fmt.Sprintf("spec.repositories[%d]", i), "", "exactly one of file and image is needed")
		}
	}
}

// dependencies rejects required dependencies that are to be resolved in the cluster.
func (c *checker) dependencies(list []manifestsv1alpha1.PackageManifestDependency) {
	seen := map[string]bool{}
	for i := range list {
		d, field := &list[i], fmt.Sprintf("spec.dependencies[%d]", i)
		set := 0
		for _, is := range []bool{d.Image != nil, d.Package != nil, d.API != nil} {
			if is {
				set++
			}
		}
		if set != 1 && (c.r.Strict || set > 1) {
			c.invalid(field, "Write one entry for each.", "%d of image, package and api are set; exactly one is needed", set)
		}
		if d.Image != nil {
			c.imageDependency(field+".image", d.Image)
		}
		if d.Package == nil && d.API == nil {
			continue
		}
		if c.required(field+".name", d.Name) {
			c.unique(seen, field+".name", d.Name)
		}
		if d.Package != nil {
			field += ".package"
			c.packageDependency(field, d.Package)
		} else {
			field += ".api"
			c.apiDependency(field, d.API)
		}
		if d.Optional {
			c.unsupportedWarning(field, "the dependency is optional, and is not looked for yet")
		} else {
			c.add(violation.ReasonUnsupported, field, "Remove it, mark it as optional, or use a later version.", "dependencies of this form are not resolved yet")
		}
	}
}

func (c *checker) imageDependency(field string, d *manifestsv1alpha1.PackageManifestDependencyImage) {
	for key, value := range map[string]string{".name": d.Name, ".package": d.Package, ".range": d.Range} {
		if value == "" {
			c.doubtful(field+key, "", "Required value")
		} else if key == ".range" {
			c.versionRange(field+key, value)
		} else {
			c.required(field+key, value)
		}
	}
}

func (c *checker) packageDependency(field string, d *manifestsv1alpha1.PackageManifestDependencyPackage) {
	if c.required(field+".name", d.Name) {
		c.packageName(field+".name", d.Name)
	}
	if d.Version != "" {
		c.versionRange(field+".version", d.Version)
	}
	if d.Prereleases == nil {
		return
	}
	for i, identifier := range d.Prereleases.Identifiers {
		if identifier == "" || strings.Trim(identifier, identifierCharacters) != "" {
			c.invalid(fmt.Sprintf("%s.prereleases.identifiers[%d]", field, i), "Write it as rc.", "%q is no identifier of a prerelease", identifier)
		}
	}
}

const identifierCharacters = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

func (c *checker) apiDependency(field string, d *manifestsv1alpha1.PackageManifestDependencyAPI) {
	c.api(field, d.APIVersion, d.Kind)
	for i, path := range d.FieldPaths {
		c.required(fmt.Sprintf("%s.fieldPaths[%d]", field, i), path)
	}
}

func (c *checker) api(field, apiVersion, kind string) {
	if c.required(field+".apiVersion", apiVersion) {
		if gv, err := schema.ParseGroupVersion(apiVersion); err != nil || gv.Version == "" {
			c.invalid(field+".apiVersion", "Write it as v1 or group/v1.", "%q is no apiVersion", apiVersion)
		}
	}
	if c.required(field+".kind", kind) {
		if errs := validation.IsDNS1035Label(strings.ToLower(kind)); len(errs) > 0 {
			c.invalid(field+".kind", "", "%q is no kind: %s", kind, errs[0])
		}
	}
}

func (c *checker) provides(apis []manifestsv1alpha1.PackageManifestAPI) {
	seen := map[string]bool{}
	for i, api := range apis {
		field := fmt.Sprintf("spec.provides[%d]", i)
		c.api(field, api.APIVersion, api.Kind)
		c.unique(seen, field, api.APIVersion+" "+api.Kind)
	}
}

func (c *checker) unsupportedWarning(field, details string) {
	c.r.Warnings = append(c.r.Warnings, c.r.At(violation.ReasonUnsupported, field).Because("Use a later version for it.", "%s", details))
}

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
