package watches

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/ui/page"
)

// versionsOf are the versions of one package, the highest first, without the content of their objects.
type versionsOf struct {
	namespace, name string
	until           time.Time
	display         *corev1alpha1.PackageDisplay
	all             []listedVersion
}

type listedVersion struct {
	version, notHere string
	// repository that it is chosen from: others may offer the same version.
	repository string
	object     object
}

func (v *listedVersion) is(other *corev1alpha1.AvailableVersion) bool {
	return v.version == other.Version && v.repository == other.Repository
}

// source is a version of one repository.
type source struct {
	scope               corev1alpha1.Scope
	version, repository string
}

// object is the part of a package that has a version.
type object struct {
	scope corev1alpha1.Scope
	part  int32
}

// Offered is a package with those of its versions that a query selects. One request reads at a time.
func (c *Catalogue) Offered(ctx context.Context, q page.OfferQuery) (page.Offered, error) {
	o := page.Offered{Namespace: q.Namespace, Name: q.Name}
	var of *versionsOf
	select {
	case of = <-c.one:
	case <-ctx.Done():
		return o, errors.New("the versions of another package are being read: reload this page in a moment")
	}
	defer func() { c.one <- of }()
	if of.namespace != q.Namespace || of.name != q.Name || time.Now().After(of.until) {
		read, err := c.versions(ctx, q)
		if err != nil {
			return o, err
		}
		of = read
	}
	o.Total = len(of.all)
	if of.display != nil {
		o.Describe(of.display)
	}
	var selected []listedVersion
	for _, v := range of.all {
		if q.Selects(v.version) {
			selected = append(selected, v)
		}
	}
	o.Fitting = len(selected)
	first, last := q.Bounds(len(selected))
	return o, c.describe(ctx, &o, selected[first:last])
}

// versions chooses among the versions of a package. Texts that are long, and all that the choice does not read, are dropped
// object by object.
func (c *Catalogue) versions(ctx context.Context, q page.OfferQuery) (*versionsOf, error) {
	choose := desired.ChooserFor(c.cluster, q.Namespace)
	objects := map[source]object{}
	choose.Slim = func(scope corev1alpha1.Scope, spec *corev1alpha1.AvailablePackageSpec) {
		for i := range spec.Versions {
			v := &spec.Versions[i]
			objects[source{scope, v.Version, v.Repository}] = object{scope, spec.Part}
			slimVersion(v)
		}
	}
	found, err := choose.Choose(ctx, q.Name, versions.Request{Selection: corev1alpha1.VersionSelection{Prereleases: &corev1alpha1.Prereleases{}}})
	if err != nil {
		return nil, err
	}
	if len(found.Offered) == 0 {
		return nil, choose.Unknown(ctx, q.Name)
	}
	of := &versionsOf{namespace: q.Namespace, name: q.Name, until: time.Now().Add(pageCatalogueAge), display: found.Display}
	why, names := found.Why(), map[string]string{} // each name is kept once
	for _, o := range desired.NewestFirst(found.Offered) {
		v := listedVersion{version: o.Version.Version, repository: o.Version.Repository}
		v.object = objects[source{o.Scope, v.version, v.repository}]
		v.repository = cmp.Or(names[v.repository], v.repository)
		names[v.repository] = v.repository
		if chosen := found.Version(); chosen == nil || chosen.Version.Version != v.version {
			v.notHere = page.Brief(why[v.version])
		}
		of.all = append(of.all, v)
	}
	return of, nil
}

// slimVersion keeps what a choice reads.
func slimVersion(v *corev1alpha1.AvailableVersion) {
	slim := corev1alpha1.AvailableVersion{
		Version: v.Version, Repository: v.Repository, Image: v.Image, Retracted: page.Brief(v.Retracted), Constraints: v.Constraints, NotCarriedOver: v.NotCarriedOver,
	}
	if len(v.Files) > 0 {
		slim.Files = someFiles
	}
	*v = slim
}

// someFiles stand for those of a version whose content is in files.
var someFiles = map[string]string{"manifest.yaml": ""}

// describe reads the objects of the versions that are shown.
func (c *Catalogue) describe(ctx context.Context, o *page.Offered, shown []listedVersion) error {
	read := map[object]map[[2]string]page.Version{}
	for _, v := range shown {
		if read[v.object] != nil {
			continue
		}
		read[v.object] = map[[2]string]page.Version{}
		namespace := ""
		if v.object.scope == corev1alpha1.ScopeNamespaced {
			namespace = o.Namespace
		}
		a := v.object.scope.NewAvailablePackage()
		err := c.cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: repository.ObjectName(o.Name, v.object.part)}, a)
		if client.IgnoreNotFound(err) != nil {
			return c.cluster.Explain("cannot read what repositories offer of "+o.Name, err)
		}
		if apierrors.IsNotFound(err) {
			continue // it changed; the versions are shown without it
		}
		for i := range a.AvailableSpec().Versions {
			version := &a.AvailableSpec().Versions[i]
			if slices.ContainsFunc(shown, func(s listedVersion) bool { return s.object == v.object && s.is(version) }) {
				read[v.object][[2]string{version.Version, version.Repository}] = page.VersionOf(version)
			}
		}
	}
	for _, v := range shown {
		one := read[v.object][[2]string{v.version, v.repository}]
		one.Version, one.Source, one.NotHere = strings.Clone(v.version), page.Brief(v.repository), v.notHere
		o.Versions = append(o.Versions, one)
	}
	return nil
}
