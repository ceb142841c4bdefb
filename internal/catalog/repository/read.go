package repository

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/util/validation"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/manifest"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Parse reads a repository file, named path in messages. Its error is violation.Violations.
func Parse(path string, data []byte) (*Index, error) {
	if len(data) > limits.FileBytes {
		return nil, violation.Violations{{
			Reason: violation.ReasonLimit, Path: path, Details: fmt.Sprintf("the file has more than %d bytes", limits.FileBytes), Remedy: "Split the repository.",
		}}
	}
	p := parser{index: &Index{}, seen: map[string]bool{}}
	problems := document.Each(path, data, p.document)
	problems = append(problems, p.problems...)
	if p.documents == 0 && len(problems) == 0 {
		problems = append(problems, violation.Violation{
			Reason: violation.ReasonRepositoryInvalid, Path: path, Details: "the file is empty",
			Remedy: "Begin one with kubectl package repository initialize.",
		})
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	p.index.sort()
	return p.index, nil
}

type parser struct {
	index     *Index
	documents int
	seen      map[string]bool
	doc       *document.Document
	problems  violation.Violations
}

func (p *parser) fail(field, remedy, format string, args ...any) {
	if len(p.problems) > limits.Violations {
		return
	}
	p.problems = append(p.problems, violation.Violation{
		Reason: violation.ReasonRepositoryInvalid, Path: p.doc.Path, Document: p.doc.Index, Line: p.doc.Line(field),
		Field: field, Details: fmt.Sprintf(format, args...), Remedy: remedy,
	})
}

func (p *parser) document(d *document.Document) {
	p.doc = d
	p.documents++
	want := manifestsv1alpha1.KindRepositoryEntry
	if d.Index == 1 {
		want = manifestsv1alpha1.KindRepository
	}
	m, _ := d.Value.(map[string]any)
	if m["apiVersion"] != manifestsv1alpha1.GroupVersion.String() || m["kind"] != want {
		p.fail("kind", fmt.Sprintf("Set apiVersion to %s and kind to %s.", manifestsv1alpha1.GroupVersion, want),
			"got apiVersion %q and kind %q", fmt.Sprint(m["apiVersion"]), fmt.Sprint(m["kind"]))
		return
	}
	raw, err := json.Marshal(d.Value)
	if err != nil {
		p.fail("", "", "%v", err)
		return
	}
	if d.Index == 1 {
		p.repository(raw)
		return
	}
	p.entry(raw)
}

func (p *parser) repository(raw []byte) {
	var r manifestsv1alpha1.Repository
	if err := json.Unmarshal(raw, &r); err != nil {
		p.fail("", "", "%v", err)
		return
	}
	if problems := validation.IsDNS1123Subdomain(r.Name); len(problems) > 0 {
		p.fail("metadata.name", "", "%q is no name: %s", r.Name, problems[0])
	}
	p.index.Name = r.Name
}

// hexDigest is a digest with or without its algorithm.
var hexDigest = regexp.MustCompile(`^(sha256:)?[0-9a-f]{64}$`)

func (p *parser) entry(raw []byte) {
	var doc manifestsv1alpha1.RepositoryEntry
	if err := json.Unmarshal(raw, &doc); err != nil {
		p.fail("", "", "%v", err)
		return
	}
	before := len(p.problems)
	e := Entry{Package: doc.Data.Name, Image: doc.Data.Image, Digest: doc.Data.Digest, Constraints: doc.Data.Constraints}
	if problems := validation.IsDNS1123Subdomain(e.Package); len(problems) > 0 {
		p.fail("data.name", "", "%q is no name of a package: %s", e.Package, problems[0])
	}
	if _, err := name.NewRepository(e.Image); err != nil {
		p.fail("data.image", "Write it as host/path, without tag and digest.", "%q is no repository of an image", e.Image)
	}
	if !hexDigest.MatchString(e.Digest) {
		p.fail("data.digest", "", "%q is no digest", e.Digest)
	}
	e.Digest = digestPrefix + e.hex()
	if doc.Name != e.name() {
		p.fail("metadata.name", "", "it has to be the name of the package and the digest: %q", e.name())
	}
	if p.seen[e.Image+"@"+e.name()] {
		p.fail("metadata.name", "Remove one of the two entries.", "%q stands twice", e.name())
	}
	p.seen[e.Image+"@"+e.name()] = true
	e.Versions = p.versions(doc.Data.Versions)
	p.constraints(doc.Data.Constraints)
	if len(p.problems) == before {
		p.index.Entries = append(p.index.Entries, e)
	}
}

func (p *parser) versions(texts []string) []*semver.Version {
	switch {
	case len(texts) == 0:
		p.fail("data.versions", "List at least one.", "Required value")
	case len(texts) > limits.RepositoryVersions:
		p.fail("data.versions", "", "%d versions; the limit is %d", len(texts), limits.RepositoryVersions)
		return nil
	}
	var out []*semver.Version
	for i, text := range texts {
		v, err := ParseVersion(text)
		if err != nil {
			p.fail(document.Index("data.versions", i), "", "%v", err)
			continue
		}
		out = append(out, v)
	}
	return out
}

func (p *parser) constraints(constraints []manifestsv1alpha1.PackageManifestConstraint) {
	if n := len(constraints); n > limits.Expressions {
		p.fail("data.constraints", "", "%d constraints; the limit is %d", n, limits.Expressions)
		return
	}
	for i, c := range constraints {
		for _, name := range platformsOf(c) {
			if name != manifestsv1alpha1.PlatformKubernetes && name != manifestsv1alpha1.PlatformOpenShift {
				p.fail(document.Index("data.constraints", i), "Supported: Kubernetes, OpenShift.", "%q is no platform", name)
			}
		}
		if pv := c.PlatformVersion; pv != nil {
			if _, err := manifest.ParseRange(pv.Range); err != nil {
				p.fail(document.Index("data.constraints", i)+".platformVersion.range", `Write it as ">=1.29, <2".`, "%q is no range of versions", pv.Range)
			}
		}
	}
}

func platformsOf(c manifestsv1alpha1.PackageManifestConstraint) []manifestsv1alpha1.PlatformName {
	names := c.Platform
	if c.PlatformVersion != nil {
		names = append(names[:len(names):len(names)], c.PlatformVersion.Name)
	}
	return names
}

// ParseVersion reads a semantic version, with or without a leading v.
func ParseVersion(text string) (*semver.Version, error) {
	v, err := semver.NewVersion(text)
	if err != nil || len(text) > validation.DNS1123SubdomainMaxLength {
		return nil, fmt.Errorf("%.100q is no semantic version: write it as v1.2.3", text)
	}
	return v, nil
}
