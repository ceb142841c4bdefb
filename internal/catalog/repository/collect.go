package repository

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/manifest"
)

// digest is the key of equal contents.
type digest [sha256.Size]byte

// offered collects the offers of a package.
type offered struct {
	versions map[string]*offeredVersion
	// described is the PackageMetadata; display is the description of the highest version.
	described *description
	display   *corev1alpha1.PackageDisplay
	displayOf *semver.Version
}

// offeredVersion is one version with the place of its document, for messages.
type offeredVersion struct {
	version corev1alpha1.AvailableVersion
	order   *semver.Version
	digest  digest
	place   string
	// contradicted means that the version is offered twice, with different content.
	contradicted bool
}

// description is the PackageMetadata of a package.
type description struct {
	display      *corev1alpha1.PackageDisplay
	digest       digest
	place        string
	contradicted bool
}

// pkg returns the offers of a package so far.
func (r *reader) pkg(name string) *offered {
	p := r.packages[name]
	if p == nil {
		p = &offered{versions: map[string]*offeredVersion{}}
		r.packages[name] = p
	}
	return p
}

// place returns the position of the document, for messages about another one.
func (r *reader) place() string { return fmt.Sprintf("%s idx %d", r.doc.Path, r.doc.Index-1) }

// reservedName matches the names that ObjectName gives to further parts.
var reservedName = regexp.MustCompile(`\.part-[0-9]+$`)

// name checks a package name of a catalogue.
func (r *reader) name(field, name string) bool {
	problems := validation.IsDNS1123Subdomain(name)
	switch {
	case len(problems) > 0:
		r.fail(field, "Write it as shop.example.com.", "%q is not a valid package name: %s", name, problems[0])
	case len(name) > limits.AvailableNameBytes:
		r.limit(field, "Shorten it.", "the name has %d bytes; the limit is %d", len(name), limits.AvailableNameBytes)
	case reservedName.MatchString(name):
		r.fail(field, "Choose another name.", "%q ends as the objects of packages with many versions do", name)
	default:
		return true
	}
	return false
}

// offer adds versions with the same content.
func (r *reader) offer(name string, v corev1alpha1.AvailableVersion, orders ...*semver.Version) {
	data, err := json.Marshal(v)
	if err != nil {
		r.fail("", "", "%v", err)
		return
	}
	if len(data) > limits.AvailableVersionBytes {
		r.limit("", "Shorten its notes, schema or files.", "the version has %d bytes; the limit is %d", len(data), limits.AvailableVersionBytes)
		return
	}

	sum := digest(sha256.Sum256(data))
	p := r.pkg(name)
	for _, order := range orders {
		text := order.String()
		if have := p.versions[text]; have != nil {
			// The order of files must not decide which content is offered.
			if have.digest != sum {
				have.contradicted = true
				r.fail("", "Remove one of them.", "version %s of %s is in %s with another content: neither is offered", text, name, have.place)
			}
			continue
		}
		v.Version = text
		p.versions[text] = &offeredVersion{version: v, order: order, digest: sum, place: r.place()}
		r.count(len(data))
	}
}

// count stops reading a repository that offers too much.
func (r *reader) count(size int) {
	r.versions++
	small := r.bytes <= limits.SmallPackageBytes
	r.bytes += size
	switch {
	case r.versions > limits.RepositoryOffers:
		r.whole = fmt.Errorf("the repository offers more than %d versions, which is the limit: withdraw old ones, or split it into several repositories", limits.RepositoryOffers)
	case int64(r.bytes) > r.opts.Bytes:
		remedy := "withdraw old versions, or shorten their notes and schemas"
		if r.opts.Bytes < limits.RepositoryOfferBytes {
			remedy += ", or raise GOMEMLIMIT and the memory limit of the manager"
		}
		r.whole = fmt.Errorf("what the repository offers has more than %d bytes, which is the limit: %s", r.opts.Bytes, remedy)
	case small && r.bytes > limits.SmallPackageBytes && r.opts.Admit != nil:
		r.whole = r.opts.Admit()
	}
}

// sized returns a description, or nil if it is too large.
func (r *reader) sized(field string, d *corev1alpha1.PackageDisplay) (*corev1alpha1.PackageDisplay, []byte) {
	data, err := json.Marshal(d)
	if err != nil {
		r.fail(field, "", "%v", err)
		return nil, nil
	}
	if len(data) > limits.AvailableDisplayBytes {
		r.limit(field, "Use a smaller icon, or a shorter description.", "the description of the package has %d bytes; the limit is %d: it is not shown", len(data), limits.AvailableDisplayBytes)
		return nil, nil
	}

	if d != nil {
		for i, link := range d.Links {
			if !manifest.IsWebPage(link.URL) {
				r.fail(document.Index(field+".links", i)+".url", manifest.LinkRemedy, "%q is not a link to a page: the description of the package is not shown", link.URL)
				return nil, nil
			}
		}
	}

	return d, data
}

// describe sets the description of a package, which overrides its versions' descriptions.
func (r *reader) describe(name string, d *corev1alpha1.PackageDisplay) {
	d, data := r.sized("spec", d)
	if d == nil {
		return
	}
	p, sum := r.pkg(name), digest(sha256.Sum256(data))
	switch have := p.described; {
	case have == nil:
		p.described = &description{display: d, digest: sum, place: r.place()}
	case have.digest != sum:
		have.contradicted = true
		r.fail("", "Remove one of them.", "%s describes %s differently: neither is shown", have.place, name)
	}
}

// content returns the package, and whether any of its versions is offered.
func (p *offered) content(name string) (Package, bool) {
	out := Package{Name: name, Display: p.display}
	if d := p.described; d != nil && !d.contradicted {
		out.Display = d.display
	}

	kept := make([]*offeredVersion, 0, len(p.versions))
	for _, v := range p.versions {
		if !v.contradicted {
			kept = append(kept, v)
		}
	}

	slices.SortFunc(kept, func(a, b *offeredVersion) int { return versions.Compare(a.order, b.order) })
	for _, v := range kept {
		out.Versions = append(out.Versions, v.version)
	}

	return out, len(kept) > 0
}
