package manifest

import (
	"bytes"
	"fmt"
	"image/png"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/internal/loader/violation"
)

// version checks the fields that become labels of objects.
func (c *checker) version(spec *manifestsv1alpha1.PackageManifestSpec) {
	if v := spec.Version; v != "" {
		label := strings.ReplaceAll(v, "+", "_")
		if _, err := semver.StrictNewVersion(v); err != nil {
			c.invalid("spec.version", "Write it as 1.2.3 or 1.2.3-rc.1.", "%q is not a semantic version", v)
		} else if errs := validation.IsValidLabelValue(label); len(errs) > 0 {
			c.invalid("spec.version", "Shorten it.", "%q cannot be a label value: %s", label, errs[0])
		}
	}

	if p := spec.Provider; p != "" {
		if errs := validation.IsValidLabelValue(p); len(errs) > 0 {
			c.invalid("spec.provider", "Write free text into spec.display.", "%q cannot be a label value: %s", p, errs[0])
		}
	}
}

// packageName checks the name that repositories and dependencies of other packages use.
func (c *checker) packageName(field, name string) {
	if name == "" {
		return
	}
	const remedy = "Write it as shop.example.com."
	if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
		c.invalid(field, remedy, "%q is not a valid package name: %s", name, errs[0])
	} else if strings.Count(name, ".") < 2 {
		c.invalid(field, remedy, "%q has fewer than three segments", name)
	}
}

// release checks the notes, date and licenses that catalogs show.
func (c *checker) release(r *manifestsv1alpha1.PackageManifestRelease) {
	if r == nil {
		return
	}
	c.prose("spec.release.notes", r.Notes, limits.ProseBytes)
	_, noDate := time.Parse(time.DateOnly, r.Date)
	if _, noTime := time.Parse(time.RFC3339, r.Date); r.Date != "" && noDate != nil && noTime != nil {
		c.invalid("spec.release.date", "Write it as 2026-01-31 or 2026-01-31T12:00:00Z.", "%q is not a date", r.Date)
	}
	for i, license := range r.Licenses {
		c.line(fmt.Sprintf("spec.release.licenses[%d]", i), license)
	}
}

// display checks the texts and the icon of a package. All of them are shown to users who do not
// trust the author.
func (c *checker) display(d *manifestsv1alpha1.PackageManifestDisplay, files archive.Files) {
	if d == nil {
		return
	}

	for field, text := range map[string]string{"name": d.Name, "shortDescription": d.ShortDescription} {
		if text != "" {
			c.line("spec.display."+field, text)
		}
	}

	for field, text := range map[string]string{"longDescription": d.LongDescription, "support": d.Support, "requirements": d.Requirements} {
		c.prose("spec.display."+field, text, limits.ProseBytes)
	}

	for i, m := range d.Maintainers {
		field := fmt.Sprintf("spec.display.maintainers[%d].", i)
		c.line(field+"name", m.Name)
		c.prose(field+"email", m.Email, limits.LineBytes)
		c.prose(field+"url", m.URL, limits.LineBytes)
	}

	for i, category := range d.Categories {
		c.line(fmt.Sprintf("spec.display.categories[%d]", i), category)
	}

	// These are used to find a package, and lead to further information.
	if c.few("spec.display.keywords", len(d.Keywords)) {
		for i, keyword := range d.Keywords {
			c.line(fmt.Sprintf("spec.display.keywords[%d]", i), keyword)
		}
	}

	if c.few("spec.display.links", len(d.Links)) {
		for i, link := range d.Links {
			field := fmt.Sprintf("spec.display.links[%d].", i)
			c.line(field+"name", link.Name)
			before := len(c.problems)
			c.line(field+"url", link.URL)
			if len(c.problems) == before && !IsWebPage(link.URL) {
				c.invalid(field+"url", LinkRemedy, "%q is not a link to a page", link.URL)
			}
		}
	}

	if c.few("spec.display.owners", len(d.Owners)) {
		for i, owner := range d.Owners {
			field := fmt.Sprintf("spec.display.owners[%d].", i)
			c.line(field+"name", owner.Name)
			if owner.Email != "" {
				c.line(field+"email", owner.Email)
			}
		}
	}

	if d.Icon != "" {
		c.icon(d.Icon, files)
	}
}

// few bounds the entries of a list.
func (c *checker) few(field string, n int) bool {
	if n > limits.DisplayItems {
		c.add(violation.ReasonLimit, field, "Remove some.", "%d entries; the limit is %d", n, limits.DisplayItems)
		return false
	}
	return true
}

// LinkRemedy is the remedy for an invalid link.
const LinkRemedy = "Write it as https://example.com/page, without user name and password."

// IsWebPage reports whether a text is a URL of a web page, so that a link to it does not run code.
// User names are refused, because they could pass for the host.
func IsWebPage(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.User == nil &&
		!strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '\\' })
}

// icon checks the file of an icon by its extension and content.
func (c *checker) icon(path string, files archive.Files) {
	const field = "spec.display.icon"
	data, ok := files[path]
	switch {
	case !ok:
		c.invalid(field, "Give the path within the package.", "the package has no file %q", path)
	case len(data) > limits.IconBytes:
		c.add(violation.ReasonLimit, field, "Use a smaller picture.", "the file %q has %d bytes; the limit is %d", path, len(data), limits.IconBytes)
	case strings.HasSuffix(path, ".png"):
		if _, err := png.DecodeConfig(bytes.NewReader(data)); err != nil {
			c.invalid(field, "", "the file %q is not a PNG picture", path)
		}
	case strings.HasSuffix(path, ".svg"):
		if !strings.Contains(string(data), "<svg") {
			c.invalid(field, "", "the file %q is not a SVG picture", path)
		}
	default:
		c.invalid(field, "Use a PNG or SVG file.", "%q is neither .png nor .svg", path)
	}
}

// line checks a mandatory text of one line.
func (c *checker) line(field, text string) {
	if c.required(field, text) {
		c.prose(field, text, limits.LineBytes)
	}
}

// prose bounds a text and refuses control characters, which could change the rest of a page or
// terminal.
func (c *checker) prose(field, text string, limit int) {
	if len(text) > limit {
		c.add(violation.ReasonLimit, field, "Shorten it.", "%d bytes; the limit is %d", len(text), limit)
	}
	if strings.ContainsFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control)
	}) {
		c.invalid(field, "", "control characters are not allowed")
	}
}
