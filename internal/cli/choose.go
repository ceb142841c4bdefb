package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/violation"
)

// chooser chooses versions as the manager does.
type chooser struct {
	*cluster.Catalogue
	cluster   *cluster.Cluster
	namespace string
	// target is the cluster that the objects are in, nil for this one; there is the connection to it, where there is one.
	target *corev1alpha1.TargetReference
	there  *cluster.Cluster
	// platform is nil before it was looked up, and where the user may not read it.
	platform *versions.Platform
	looked   bool
}

// chooserFor is for the packages of a namespace; for ClusterPackages where it is empty.
func chooserFor(cl *cluster.Cluster, namespace string) *chooser {
	return &chooser{Catalogue: cl.Catalogue(namespace), cluster: cl, namespace: namespace}
}

// at returns a chooser for a package whose objects are in another cluster, itself where ref is nil.
func (c *chooser) at(ref *corev1alpha1.TargetReference) *chooser {
	if ref == nil {
		return c
	}
	remote := *c
	remote.target, remote.platform, remote.looked = ref, nil, false
	return &remote
}

// chosen is a version, or why there is none, of those that are offered.
type chosen struct {
	name    string
	display *corev1alpha1.PackageDisplay
	offered []offers.Offered
	versions.Choice
}

// version is nil where none was chosen.
func (c *chosen) version() *offers.Offered {
	if c.Index < 0 {
		return nil
	}
	return &c.offered[c.Index]
}

// why says of each version that is offered why it is not chosen; empty for the chosen one and for those that may be.
func (c *chosen) why() map[string]string {
	why := map[string]string{}
	for _, considered := range c.Considered {
		why[considered.Version] = considered.Why
	}
	return why
}

func (c *chooser) choose(ctx context.Context, name string, request versions.Request) (*chosen, error) {
	offered, display, err := c.Of(ctx, name)
	if err != nil {
		return nil, err
	}
	found := &chosen{name: name, display: display, offered: offered}
	candidates := make([]versions.Candidate, len(offered))
	for i, o := range offered {
		candidates[i] = o.Candidate()
		if len(o.Version.Constraints) > 0 && !c.looked {
			c.platform, c.looked = c.look(ctx), true
		}
		if c.platform == nil {
			candidates[i].Constraints = nil // the manager knows
		}
	}
	if c.platform != nil {
		request.Platform = *c.platform
	}
	found.Choice = versions.Select(candidates, request)
	return found, nil
}

// look reads the versions of the cluster that the objects are in; nil where the user may not.
func (c *chooser) look(ctx context.Context) *versions.Platform {
	if c.cluster.Config == nil {
		return nil
	}
	at := c.there
	if at == nil {
		var err error
		if at, err = c.cluster.At(ctx, c.namespace, c.target); err != nil {
			return nil
		}
	}
	reader, err := at.AnyKind()
	if err != nil {
		return nil
	}
	env, err := environmentOf(ctx, at, reader.RESTMapper(), c.target.NamespaceOf(c.namespace))
	if err != nil || env == nil {
		return nil
	}
	return platformOf(env)
}

func platformOf(env *manifestsv1alpha1.PackageEnvironment) *versions.Platform {
	found := &versions.Platform{Kubernetes: env.Kubernetes.Version}
	if env.OpenShift != nil {
		found.OpenShift = env.OpenShift.Version
	}
	return found
}

// mustChoose is choose with an error where nothing is chosen, which names the versions and why they are not.
func (c *chooser) mustChoose(ctx context.Context, name string, request versions.Request) (*chosen, error) {
	found, err := c.choose(ctx, name, request)
	switch {
	case err != nil:
		return nil, err
	case len(found.offered) == 0:
		return nil, c.unknown(ctx, name)
	case found.Index < 0:
		return nil, noVersion(found, request.Selection, c.flag())
	}
	return found, nil
}

func (c *chooser) flag() string { return scopeFlag(c.namespace) }

// scopeFlag is what commands about the catalogue of a namespace, or with "" of the cluster, need beside a name.
func scopeFlag(namespace string) string {
	if namespace == "" {
		return " --cluster"
	}
	return " -n " + namespace
}

// unknown is the error for a package that is not offered; it names the nearest ones.
func (c *chooser) unknown(ctx context.Context, name string) error {
	where := "to the cluster"
	if c.namespace != "" {
		where = "in namespace " + c.namespace
	}
	names, err := c.Names(ctx)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("no repository offers %s %s: no package is offered at all. %s", name, where, c.nothingOffered())
	}
	advice := violation.Suggest(name, names, "")
	if advice == "" {
		advice = containing(name, names)
	}
	return fmt.Errorf("no repository offers %s %s. %sSee: kubectl package available list%s", name, where, advice+map[bool]string{true: " "}[advice != ""], c.flag())
}

// containing names packages of which a name is a part.
func containing(name string, names []string) string {
	const most = 3
	var near []string
	for _, n := range names {
		if strings.Contains(n, name) || strings.Contains(name, n) || strings.HasPrefix(n, strings.SplitN(name, ".", 2)[0]) {
			near = append(near, n)
		}
	}
	if len(near) == 0 {
		return ""
	}
	return "Did you mean " + strings.Join(near[:min(len(near), most)], ", ") + "?"
}

// noVersion is the error where no version fits: each with the reason, the highest first.
func noVersion(found *chosen, selection corev1alpha1.VersionSelection, flag string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "no version of %s can be installed", found.name)
	if selection.Version != "" {
		fmt.Fprintf(&b, " with %q", selection.Version)
	}
	why, prereleases := found.why(), false
	for i, v := range newestFirst(found.offered) {
		if i == limits.VersionsNamed {
			fmt.Fprintf(&b, "\n  … and %d more", len(found.offered)-i)
			break
		}
		reason := cmp.Or(why[v.Version.Version], "not chosen")
		fmt.Fprintf(&b, "\n  %s  %s", v.Version.Version, reason)
		prereleases = prereleases || strings.Contains(reason, "prerelease")
	}
	switch {
	case found.Reason == corev1alpha1.ReasonDowngradeRefused:
		b.WriteString("\nTo go down to a lower version: kubectl package upgrade … --allow-downgrade")
	case prereleases && selection.Prereleases == nil:
		b.WriteString("\nTo let prereleases take part: --prereleases")
	}
	fmt.Fprintf(&b, "\nSee: kubectl package available get %s%s", found.name, flag)
	return errors.New(b.String())
}

// newestFirst orders versions from the highest to the lowest.
func newestFirst(offered []offers.Offered) []offers.Offered {
	sorted := slices.Clone(offered)
	slices.SortStableFunc(sorted, func(a, b offers.Offered) int { return compareVersions(b.Version.Version, a.Version.Version) })
	return sorted
}

func compareVersions(a, b string) int {
	v, errA := versions.Parse(a)
	w, errB := versions.Parse(b)
	if errA != nil || errB != nil {
		return cmp.Compare(a, b)
	}
	return versions.Compare(v, w)
}

// newest is the highest release that can be installed, or else the highest version.
func (c *chooser) newest(ctx context.Context, name string) (*chosen, *offers.Offered, error) {
	found, err := c.choose(ctx, name, versions.Request{})
	if err != nil || len(found.offered) == 0 {
		return found, nil, err
	}
	if v := found.version(); v != nil {
		return found, v, nil
	}
	return found, &newestFirst(found.offered)[0], nil
}

// nothingOffered is the remedy where no repository offers a package.
func (c *chooser) nothingOffered() string {
	return "Add a repository: kubectl package source add NAME IMAGE" + c.flag() + "; or see what is wrong with the present ones: kubectl package source list -A"
}
