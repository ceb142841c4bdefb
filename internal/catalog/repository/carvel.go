package repository

import (
	"fmt"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
)

// carvelMetadata reads the description of a package.
func (r *reader) carvelMetadata() {
	var doc packageMetadata
	if !r.decode(&doc) {
		return
	}
	if !r.name("metadata.name", doc.Metadata.Name) || !r.qualified("metadata.name", doc.Metadata.Name) {
		return
	}

	s := &doc.Spec
	d := corev1alpha1.PackageDisplay{
		Name: s.DisplayName, ShortDescription: s.ShortDescription, LongDescription: s.LongDescription, IconSVG: s.IconSVGBase64,
		Provider: s.ProviderName, Categories: s.Categories, Support: s.SupportDescription,
	}

	for _, m := range s.Maintainers {
		d.Maintainers = append(d.Maintainers, m.Name)
	}

	r.describe(doc.Metadata.Name, &d)
}

// qualified requires three segments, as kapp-controller does for names of packages.
func (r *reader) qualified(field, name string) bool {
	if strings.Count(name, ".") < 2 {
		r.fail(field, "Write it as shop.example.com.", "%q has fewer than three segments", name)
		return false
	}
	return true
}

// carvelPackage reads one version.
func (r *reader) carvelPackage() {
	var doc carvelPackage
	if !r.decode(&doc) {
		return
	}

	r.object = "Package " + doc.Metadata.Name
	before, s := len(r.problems), &doc.Spec
	order := r.carvelName(&doc)
	v := corev1alpha1.AvailableVersion{Revision: doc.Metadata.Annotations[revisionAnnotation], Release: r.release(s)}
	r.revision("metadata.annotations["+revisionAnnotation+"]", v.Revision)
	r.kubernetesVersions(&v, s.KubernetesVersionSelection)
	if s.ValuesSchema != nil {
		v.ConfigSchema = r.schema(s.ValuesSchema.OpenAPIv3)
	}

	r.requirements(&v, s)
	if app := &s.Template.Spec; len(v.Dependencies) > 0 && len(app.Fetch)+len(app.Template)+len(app.Deploy) == 0 {
		r.bundle(&v, s.RefName)
	} else {
		r.template(&v, app)
	}

	if len(r.problems) > before || r.whole != nil {
		return
	}
	if s.KappControllerVersionSelection != nil && !r.opts.Withheld[r.doc.Path] {
		r.ignored[s.RefName+": kappControllerVersionSelection is ignored because it constrains another controller; versions that state it"]++
	}

	r.offer(s.RefName, v, order)
}

// revisionAnnotation orders different contents of the same version from several repositories.
const revisionAnnotation = "packaging.carvel.dev/revision"

// carvelName checks name and version.
func (r *reader) carvelName(doc *carvelPackage) *semver.Version {
	s := &doc.Spec
	if r.name("spec.refName", s.RefName) {
		r.qualified("spec.refName", s.RefName)
	}

	order, err := semver.StrictNewVersion(s.Version)
	if err != nil || len(s.Version) > validation.DNS1123SubdomainMaxLength {
		r.fail("spec.version", "Write it as 1.2.3.", "%q is not a semantic version", s.Version)
		return nil
	}
	if want := s.RefName + "." + s.Version; doc.Metadata.Name != want {
		r.fail("metadata.name", "", "it has to be refName and version: %q", want)
	}

	return order
}

// kubernetesVersions converts a constraint on the version of Kubernetes.
func (r *reader) kubernetesVersions(v *corev1alpha1.AvailableVersion, c *versionSelection) {
	if c == nil {
		return
	}
	const at = "spec.kubernetesVersionSelection.constraints"
	if _, err := versions.ParseConstraint(c.Constraints); err != nil || c.Constraints == "" {
		r.fail(at, `Write it as ">=1.29".`, "%q is not a range of versions", c.Constraints)
	}
	v.Constraints = []corev1alpha1.AvailableConstraint{{Platform: string(manifestsv1alpha1.PlatformKubernetes), Range: c.Constraints}}
}

// release returns nil if the document has no information about the release.
func (r *reader) release(s *carvelSpec) *corev1alpha1.PackageRelease {
	out := corev1alpha1.PackageRelease{
		Notes: s.ReleaseNotes, Licenses: s.Licenses, Requirements: s.CapacityRequirementsDescription, Date: s.ReleasedAt,
	}
	if s.ReleasedAt != "" {
		if _, err := time.Parse(time.RFC3339, s.ReleasedAt); err != nil {
			r.fail("spec.releasedAt", "Write it as 2026-01-31T12:00:00Z.", "%q is not a date", s.ReleasedAt)
		}
	}

	if len(s.IncludedSoftware) > 0 {
		out.Notes = strings.TrimSpace(strings.TrimSpace(out.Notes) + "\n\n" + included(s.IncludedSoftware))
	}
	if out.Notes+out.Date+out.Requirements == "" && len(out.Licenses) == 0 {
		return nil
	}

	return &out
}

// included formats a list of software in Markdown.
func included(software []includedSoftware) string {
	lines := []string{"Included software:", ""}
	for _, s := range software {
		line := "- " + strings.TrimSpace(s.DisplayName+" "+s.Version)
		if s.Description != "" {
			line += ": " + s.Description
		}
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

// resolves reports whether a step of kbld only replaces images by digests, which the lock of a
// bundle already has. Its input has to be everything, or the output of the steps before it.
func resolves(step any) bool {
	kbld, ok := step.(map[string]any)
	if !ok {
		return false
	}
	paths, _ := kbld["paths"].([]any)
	for _, p := range paths {
		if p != "." && p != "-" && p != loader.ImagesLock {
			return false
		}
	}
	return len(without(kbld, "paths")) == 0
}

// template reads the source of a version's content, and names the parts that are not carried over.
func (r *reader) template(v *corev1alpha1.AvailableVersion, s *appSpec) {
	r.fetch(v, s.Fetch)
	lost := &v.NotCarriedOver
	for i, step := range s.Template {
		if resolves(step["kbld"]) {
			delete(step, "kbld")
		}
		lose(lost, fmt.Sprintf("template.spec.template[%d]", i), step)
	}

	for i, step := range s.Deploy {
		at := fmt.Sprintf("template.spec.deploy[%d]", i)
		kapp, ok := step["kapp"].(map[string]any)
		if i == 0 && (ok || step["kapp"] == nil) {
			lose(lost, at+".kapp", without(kapp, ""))
			delete(step, "kapp")
		}
		lose(lost, at, step)
	}

	if len(*lost) > 0 {
		v.Image, v.Files = "", nil
		if n := len(*lost) - limits.NotCarriedOver; n > 0 {
			*lost = append((*lost)[:limits.NotCarriedOver:limits.NotCarriedOver], fmt.Sprintf("and %d more", n))
		}
	}

	v.Scopes = loader.PlainScopes(v.Files)
}
