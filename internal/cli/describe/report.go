package describe

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/manifest"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/permissions"
)

// Report describes a package, as JSON and YAML.
type Report struct {
	Name     string `json:"name"`
	Version  string `json:"version,omitempty"`
	Provider string `json:"provider,omitempty"`

	// Component is the described one. Components are all components of the package.
	Component    string                                    `json:"component,omitempty"`
	Components   []string                                  `json:"components,omitempty"`
	Scopes       []string                                  `json:"scopes"`
	Display      *manifestsv1alpha1.PackageManifestDisplay `json:"display,omitempty"`
	Description  string                                    `json:"description,omitempty"`
	Constraints  []string                                  `json:"constraints,omitempty"`
	Dependencies []string                                  `json:"dependencies,omitempty"`
	Provides     []corev1alpha1.ProvidedAPI                `json:"provides,omitempty"`
	Phases       []Phase                                   `json:"phases"`
	Config       []Key                                     `json:"config"`
	Images       []Image                                   `json:"images,omitempty"`

	// Asks are the rights that the package requests from the manager; nil for none. Grants include
	// them.
	Asks *Asks `json:"asks,omitempty"`
	// Grants are the rights that objects of the package give to others.
	Grants []Grant `json:"grants,omitempty"`

	// Needs are the rights that the applying identity needs on objects of the package.
	Needs     []rbacv1.PolicyRule `json:"needs"`
	TestCases []string            `json:"testCases,omitempty"`
}

// Asks are the rights that a package requests, and their account. The manager writes no object of
// the package unless they are granted.
type Asks struct {
	ServiceAccount string              `json:"serviceAccount"`
	Rules          []rbacv1.PolicyRule `json:"rules"`
}

// AsksOf returns the rights that a package requests, or nil.
func AsksOf(m *manifestsv1alpha1.PackageManifest) *Asks {
	rules := manifest.Rules(m.Spec.Permissions)
	if len(rules) == 0 {
		return nil
	}
	return &Asks{m.Spec.Permissions.ServiceAccountName, rules}
}

// String describes the request in a sentence.
func (a *Asks) String() string {
	return fmt.Sprintf("The package requests rights for its ServiceAccount %s: no object is written unless the ceiling of the manager (--permission-ceiling) includes them: %s",
		a.ServiceAccount, permissions.DescribeRules(a.Rules))
}

// Phase of the rollout.
type Phase struct {
	Name    string   `json:"name"`
	Class   string   `json:"class,omitempty"`
	Objects []Object `json:"objects"`
}

// Object of a phase.
type Object struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Namespace  string   `json:"namespace,omitempty"`
	Name       string   `json:"name"`
	Path       string   `json:"path,omitempty"`
	Probes     []string `json:"probes,omitempty"`

	// Keep is set for an object that survives the deletion of the package.
	Keep bool `json:"keep,omitempty"`
}

// Image that the package uses.
type Image struct {
	Name  string `json:"name"`
	Image string `json:"image"`
	// Digest in the lock; empty if it has none.
	Digest string `json:"digest,omitempty"`
}

// Of returns the report of a package that was loaded from files. components are all of its
// components.
func Of(pkg *loader.Package, files loader.Files, component string, components []string) (*Report, error) {
	spec := &pkg.Manifest.Spec
	r := &Report{
		Name: pkg.Manifest.Name, Version: spec.Version, Provider: spec.Provider, Component: component, Components: components,
		Display: spec.Display, Description: loader.Description(pkg.Manifest, files), Constraints: constraints(spec.Constraints), Dependencies: dependencies(pkg), Provides: pkg.Provides,
		Config: ConfigKeys(spec.Config.OpenAPIV3Schema), Phases: []Phase{},
	}

	for _, scope := range spec.Scopes {
		r.Scopes = append(r.Scopes, string(scope))
	}

	for _, tc := range pkg.Manifest.Test.Template {
		r.TestCases = append(r.TestCases, tc.Name)
	}

	r.Images = images(pkg)
	var all []*unstructured.Unstructured
	for i, phase := range pkg.Phases {
		described := Phase{Name: phase.Name, Class: phase.Class, Objects: []Object{}}
		for j, stored := range phase.Objects {
			u := &unstructured.Unstructured{}
			if err := json.Unmarshal(stored.Object.Raw, &u.Object); err != nil {
				return nil, fmt.Errorf("phase %s: %w", phase.Name, err)
			}
			described.Objects = append(described.Objects, Object{
				APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(),
				Path: pkg.Sources[i][j].Path, Probes: probesOf(pkg.Probes, u),
				Keep: u.GetAnnotations()[corev1alpha1.DeletionPolicyAnnotation] == corev1alpha1.DeletionPolicyKeep,
			})

			all = append(all, u)
		}

		r.Phases = append(r.Phases, described)
	}

	r.Asks, r.Grants, r.Needs = AsksOf(pkg.Manifest), grants(all), permissions.Kinds(all)
	return r, nil
}

// images returns the images of the manifest with their digests in the lock.
func images(pkg *loader.Package) []Image {
	digests := map[string]string{}
	if pkg.Lock != nil {
		for _, image := range pkg.Lock.Spec.Images {
			digests[image.Name] = image.Digest
		}
	}

	var out []Image
	for _, image := range pkg.Manifest.Spec.Images {
		out = append(out, Image{image.Name, image.Image, digests[image.Name]})
	}
	return out
}

// probesOf returns the probes that select an object, as texts.
func probesOf(probes []corev1alpha1.ObjectSetProbe, u *unstructured.Unstructured) []string {
	var out []string
	kind := u.GroupVersionKind().GroupKind()
	for _, probe := range probes {
		s := probe.Selector
		if s.Kind == nil || s.Kind.Group != kind.Group || s.Kind.Kind != kind.Kind {
			continue
		}
		if s.Selector != nil {
			selector, err := metav1.LabelSelectorAsSelector(s.Selector)
			// The loader reports an invalid selector.
			if err != nil || !selector.Matches(labels.Set(u.GetLabels())) {
				continue
			}
		}

		for _, p := range probe.Probes {
			out = append(out, probeText(p))
		}
	}

	return out
}

// probeText returns a probe as text.
func probeText(p corev1alpha1.Probe) string {
	switch {
	case p.Condition != nil:
		return fmt.Sprintf("condition %s=%s", p.Condition.Type, p.Condition.Status)
	case p.FieldsEqual != nil:
		return fmt.Sprintf("%s == %s", p.FieldsEqual.FieldA, p.FieldsEqual.FieldB)
	case p.CEL != nil:
		return p.CEL.Rule
	}
	return ""
}

// constraints returns the constraints of a package as texts.
func constraints(all []manifestsv1alpha1.PackageManifestConstraint) []string {
	var out []string
	for _, c := range all {
		if c.PlatformVersion != nil {
			out = append(out, fmt.Sprintf("%s %s", c.PlatformVersion.Name, c.PlatformVersion.Range))
		}
		if len(c.Platform) > 0 {
			names := make([]string, len(c.Platform))
			for i, p := range c.Platform {
				names[i] = string(p)
			}
			slices.Sort(names)
			out = append(out, "on "+strings.Join(names, " or "))
		}

		if c.UniqueInScope != nil {
			scope := "of its scope"
			if c.UniqueInScope.Scope != "" {
				scope = "in the " + strings.ToLower(string(c.UniqueInScope.Scope))
			}
			out = append(out, "the only one "+scope)
		}
	}

	return out
}

// dependencies returns the dependencies of a package as texts, first the ones on packages and APIs.
func dependencies(pkg *loader.Package) []string {
	var out []string
	for _, d := range pkg.Dependencies {
		out = append(out, Dependency(d))
	}

	for _, d := range pkg.Manifest.Spec.Dependencies {
		if d.Image != nil {
			out = append(out, fmt.Sprintf("image %s: %s %s", d.Image.Name, d.Image.Package, d.Image.Range))
		}
	}
	return out
}

// Dependency describes a dependency on a package or an API, such as "db: package db.example.com >=1
// (optional)".
func Dependency(d corev1alpha1.Dependency) string {
	text := d.Name + ":"
	if p := d.Package; p != nil {
		text += " package " + strings.TrimSpace(p.Name+" "+p.Version)
		if p.Prereleases != nil {
			text += strings.TrimRight(" with prereleases "+strings.Join(p.Prereleases.Identifiers, ", "), " ")
		}
	}

	if a := d.API; a != nil {
		text += " API " + API(corev1alpha1.ProvidedAPI{APIVersion: a.APIVersion, Kind: a.Kind})
		if len(a.FieldPaths) > 0 {
			text += " with " + strings.Join(a.FieldPaths, ", ")
		}
	}

	if d.Optional {
		text += " (optional)"
	}
	return text
}

// API describes an API, such as "example.com/v1 Shop".
func API(api corev1alpha1.ProvidedAPI) string { return api.APIVersion + " " + api.Kind }

// Grant has the rules of a role that the package contains or binds.
type Grant struct {
	// Role, such as "ClusterRole cache-operator".
	Role string `json:"role"`
	// To are the subjects that the package binds it to.
	To []string `json:"to,omitempty"`
	// Rules of the role; empty if the package does not contain it.
	Rules []rbacv1.PolicyRule `json:"rules,omitempty"`
}

// grants returns the rights that roles and bindings of the package give, sorted by role. An invalid
// object is left out, because the API server refuses it.
func grants(all []*unstructured.Unstructured) []Grant {
	byRole := map[string]*Grant{}
	of := func(kind, namespace, name string) *Grant {
		role := roleName(kind, namespace, name)
		if byRole[role] == nil {
			byRole[role] = &Grant{Role: role}
		}
		return byRole[role]
	}

	for _, u := range all {
		if u.GroupVersionKind().Group != rbacv1.GroupName {
			continue
		}

		switch u.GetKind() {
		case "Role", "ClusterRole":
			var role rbacv1.ClusterRole
			if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &role) == nil {
				of(u.GetKind(), u.GetNamespace(), u.GetName()).Rules = role.Rules
			}
		case "RoleBinding", "ClusterRoleBinding":
			var binding rbacv1.RoleBinding
			if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &binding) != nil {
				continue
			}
			namespace := ""
			if binding.RoleRef.Kind == "Role" {
				namespace = u.GetNamespace()
			}

			grant := of(binding.RoleRef.Kind, namespace, binding.RoleRef.Name)
			for _, subject := range binding.Subjects {
				to := roleName(subject.Kind, subject.Namespace, subject.Name)
				if u.GetKind() == "RoleBinding" && u.GetNamespace() != "" {
					to += " in the namespace " + u.GetNamespace()
				}
				grant.To = append(grant.To, to)
			}
		}
	}

	var out []Grant
	for _, role := range slices.Sorted(maps.Keys(byRole)) {
		out = append(out, *byRole[role])
	}

	return out
}

// roleName returns the name of a role or a subject.
func roleName(kind, namespace, name string) string {
	return objects.Key{Kind: kind, Namespace: namespace, Name: name}.String()
}

// Targets names the resources of a rule, such as deployments.apps.
func Targets(groups, resources, urls []string) []string {
	var targets []string
	for _, resource := range resources {
		for _, group := range groups {
			targets = append(targets, schema.GroupResource{Group: group, Resource: resource}.String())
		}
	}
	return append(targets, urls...)
}
