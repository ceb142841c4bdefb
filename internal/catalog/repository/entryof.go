package repository

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image/png"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/manifest"
)

// EntryOf returns the entry of a package image, with the fields that a catalogue shows. image is
// its repository without tag and digest, digest is a text such as sha256:…, files are the files of
// the package, and provides are the APIs that it brings if it is loaded with defaults. The manifest
// must state spec.version.
func EntryOf(m *manifestsv1alpha1.PackageManifest, image, digest string, files loader.Files, provides []corev1alpha1.ProvidedAPI) (Entry, error) {
	if m.Spec.Version == "" {
		return Entry{}, fmt.Errorf("the manifest of %s states no spec.version: state one, such as 1.2.3, to offer the package in a repository", m.Name)
	}

	version, err := semver.StrictNewVersion(m.Spec.Version)
	if err != nil {
		return Entry{}, fmt.Errorf("spec.version of %s, %.100q, is not a semantic version: write it as 1.2.3", m.Name, m.Spec.Version)
	}
	if !hexDigest.MatchString(digest) {
		return Entry{}, fmt.Errorf("%.100q is not a digest of the image %s", digest, image)
	}
	e := Entry{RepositoryEntryData: manifestsv1alpha1.RepositoryEntryData{
		Name: m.Name, Image: image, Digest: digestPrefix + strings.TrimPrefix(digest, digestPrefix),
		Constraints: m.Spec.Constraints, PackageName: m.Spec.PackageName,
		Display: displayOf(m, files), Release: releaseOf(m), Provides: providesOf(m, provides),
		Dependencies: manifest.Dependencies(m.Spec.Dependencies), Scopes: scopesOf(m.Spec.Scopes),
	}, Versions: []*semver.Version{version}}
	if size := jsonSize(e.Display); size > limits.AvailableDisplayBytes {
		return Entry{}, fmt.Errorf("the icon and the description of %s have %d bytes, encoded; the limit is %d: use a smaller icon", m.Name, size, limits.AvailableDisplayBytes)
	}

	if s := m.Spec.Config.OpenAPIV3Schema; s != nil {
		raw, err := json.Marshal(s)
		if err != nil {
			return Entry{}, fmt.Errorf("write the config schema of %s: %w", m.Name, err)
		}
		e.ConfigSchema = &runtime.RawExtension{Raw: raw}
	}

	return e, nil
}

// displayOf returns the description of a package for catalogues; nil if it has none.
func displayOf(m *manifestsv1alpha1.PackageManifest, files loader.Files) *corev1alpha1.PackageDisplay {
	out := &corev1alpha1.PackageDisplay{Provider: m.Spec.Provider, LongDescription: loader.Description(m, files)}
	if d := m.Spec.Display; d != nil {
		out.Name, out.ShortDescription, out.IconSVG = d.Name, d.ShortDescription, svg(files[d.Icon])
		out.Categories, out.Support = d.Categories, d.Support
		out.Keywords = d.Keywords
		for _, p := range d.Maintainers {
			out.Maintainers = append(out.Maintainers, withContact(p.Name, cmp.Or(p.Email, p.URL)))
		}
		for _, p := range d.Owners {
			out.Owners = append(out.Owners, withContact(p.Name, p.Email))
		}
		for _, l := range d.Links {
			out.Links = append(out.Links, corev1alpha1.PackageLink{Name: l.Name, URL: l.URL})
		}
	}

	if jsonSize(out) == len("{}") {
		return nil
	}

	return out
}

// svg returns an icon as an SVG image. It embeds a PNG image.
func svg(icon []byte) []byte {
	size, err := png.DecodeConfig(bytes.NewReader(icon))
	if err != nil {
		return icon
	}
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d"><image width="%[1]d" height="%[2]d" href="data:image/png;base64,%s"/></svg>`,
		size.Width, size.Height, base64.StdEncoding.EncodeToString(icon))
}

// withContact adds a contact to a name.
func withContact(name, contact string) string {
	if contact == "" {
		return name
	}
	return name + " <" + contact + ">"
}

// releaseOf returns the information about a release; nil if there is none.
func releaseOf(m *manifestsv1alpha1.PackageManifest) *corev1alpha1.PackageRelease {
	var out corev1alpha1.PackageRelease
	if r := m.Spec.Release; r != nil {
		out = corev1alpha1.PackageRelease{Notes: r.Notes, Date: r.Date, Licenses: r.Licenses}
	}
	if d := m.Spec.Display; d != nil {
		out.Requirements = d.Requirements
	}
	if jsonSize(out) == len("{}") {
		return nil
	}
	return &out
}

// providesOf returns the APIs of the definitions and of the manifest, sorted and without
// duplicates.
func providesOf(m *manifestsv1alpha1.PackageManifest, provides []corev1alpha1.ProvidedAPI) []corev1alpha1.ProvidedAPI {
	out := slices.Clone(provides)
	for _, api := range m.Spec.Provides {
		out = append(out, corev1alpha1.ProvidedAPI{APIVersion: api.APIVersion, Kind: api.Kind})
	}
	slices.SortFunc(out, func(a, b corev1alpha1.ProvidedAPI) int {
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind))
	})
	return slices.Compact(out)
}

// scopesOf returns the scopes sorted. No scope means both.
func scopesOf(scopes []manifestsv1alpha1.PackageManifestScope) []manifestsv1alpha1.PackageManifestScope {
	out := slices.Compact(slices.Sorted(slices.Values(scopes)))
	if len(out) > 1 {
		return nil
	}
	return out
}
