package watches_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/ui/page"
	"lockstep.run/lockstep/internal/ui/watches"
	"lockstep.run/lockstep/test/clustertest"
)

// counted counts the objects that are read one by one, and refuses lists of all namespaces of a kind where it is to.
type counted struct {
	clustertest.Listing
	reads  atomic.Int64
	refuse bool
}

// Get implements client.Reader.
func (c *counted) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	c.reads.Add(1)
	return c.WithWatch.Get(ctx, key, obj, opts...)
}

// List implements client.Reader.
func (c *counted) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	if _, is := list.(*corev1alpha1.AvailablePackageList); is && c.refuse && o.Namespace == "" {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "availablepackages"}, "", errors.New("not all"))
	}
	return c.WithWatch.List(ctx, list, opts...)
}

func countedCluster(t *testing.T, refuse bool, objects ...client.Object) (*cluster.Cluster, *counted) {
	t.Helper()
	cl := clustertest.FakeCluster(t, objects...)
	c := &counted{Listing: clustertest.Listing{WithWatch: cl.WithWatch}, refuse: refuse}
	cl.WithWatch = c
	return cl, c
}

// parts are the objects of a package with versions from 1.0.0 up, each with notes and a schema that no page shows.
func parts(name string, count, each int) (objects []client.Object) {
	notes := strings.Repeat("n", 400)
	for part := range count {
		a := &corev1alpha1.ClusterAvailablePackage{ObjectMeta: metav1.ObjectMeta{Name: repository.ObjectName(name, int32(part))}}
		a.Spec.PackageName, a.Spec.Part = name, int32(part)
		if part == 0 {
			a.Spec.Display = &corev1alpha1.PackageDisplay{Name: "Shop", ShortDescription: "Sells."}
		}
		for i := range each {
			a.Spec.Versions = append(a.Spec.Versions, corev1alpha1.AvailableVersion{
				Version: fmt.Sprintf("1.%d.0", part*each+i), Image: "registry.example.com/shop@sha256:" + strings.Repeat("a", 64), Repository: "stable",
				Release: &corev1alpha1.PackageRelease{Notes: notes}, Provides: []corev1alpha1.ProvidedAPI{{APIVersion: "shop.example.com/v1", Kind: "Shop"}},
				Dependencies: []corev1alpha1.Dependency{{Name: "db", Package: &corev1alpha1.DependencyPackage{Name: "db.example.com"}}},
			})
		}
		objects = append(objects, a)
	}
	return objects
}

// Of a package with 9,900 versions, or 99,000, a page has fifty, with their APIs and needs; the others are kept as
// small, and another page of them reads the objects alone that it shows.
func TestManyVersions(t *testing.T) {
	count, fitting, most := 6, 1+10+100, 4<<20
	if os.Getenv("LOCKSTEP_DEEP") != "" {
		count, fitting, most = 60, 1+10+100+1000, 40<<20
	}
	const each = 1650
	cl, reads := countedCluster(t, false, parts("shop.example.com", count, each)...)
	c := watches.NewCatalogue(t.Context(), cl, watches.Start(t.Context(), cl))
	before, begin := heap(), time.Now()
	o, err := c.Offered(t.Context(), page.OfferQuery{Name: "shop.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d versions: %d KiB, after %s", o.Total, (heap()-before)>>10, time.Since(begin))
	if kept := heap() - before; kept > most {
		t.Errorf("%d bytes are kept", kept)
	}
	first := o.Versions[0]
	if o.Total != count*each || len(o.Versions) != page.VersionRows || first.Version != fmt.Sprintf("1.%d.0", count*each-1) || first.NotHere != "" ||
		len(first.Provides) != 1 || first.Provides[0] != "shop.example.com/v1 Shop" || len(first.Needs) != 1 || o.Title != "Shop" {
		t.Errorf("%d of %d: %+v", len(o.Versions), o.Total, first)
	}
	was := reads.reads.Load()
	o, err = c.Offered(t.Context(), page.OfferQuery{Name: "shop.example.com", Text: "1.77", Page: 2})
	if err != nil || o.Fitting != fitting || len(o.Versions) != page.VersionRows || len(o.Versions[0].Provides) != 1 {
		t.Errorf("filtered: %v, %d, %+v", err, o.Fitting, o.Versions)
	}
	if more := reads.reads.Load() - was; more > 2 {
		t.Errorf("another page reads %d objects", more)
	}
	if _, err := c.Offered(t.Context(), page.OfferQuery{Name: "shop.exmple.com"}); err == nil || !strings.Contains(err.Error(), "shop.example.com") {
		t.Errorf("a name that is none: %v", err)
	}
	runtime.KeepAlive(c)
}

// A version that two repositories offer is shown as in the one that it is chosen from, not as in the one that is read last.
func TestVersionOfTwoRepositories(t *testing.T) {
	t.Parallel()
	objects := parts("shop.example.com", 2, 1)
	for i, name := range []string{"stable", "other"} {
		v := &objects[i].(*corev1alpha1.ClusterAvailablePackage).Spec.Versions[0]
		v.Version, v.Repository, v.Provides[0].Kind = "1.0.0", name, name
	}
	first := &objects[0].(*corev1alpha1.ClusterAvailablePackage).Spec
	again := *first.Versions[0].DeepCopy()
	again.Repository, again.Provides[0].Kind = "third", "third"
	first.Versions = append(first.Versions, again)
	cl, _ := countedCluster(t, false, objects...)
	o, err := watches.NewCatalogue(t.Context(), cl, watches.Start(t.Context(), cl)).Offered(t.Context(), page.OfferQuery{Name: "shop.example.com"})
	if err != nil || len(o.Versions) != 1 || o.Versions[0].Source != "stable" || len(o.Versions[0].Provides) != 1 || o.Versions[0].Provides[0] != "shop.example.com/v1 stable" {
		t.Errorf("%v: %+v", err, o.Versions)
	}
}

// The catalogue has the packages of the cluster and of namespaces, each once however many objects it has, with the version that is
// installed where none is asked for; of a namespace that offers very much the first ones; and says what may not be read.
func TestBrowse(t *testing.T) {
	t.Parallel()
	objects := append(parts("large.example.com", 3, 2), clustertest.OfferedAs("shop", "1.0.0", "1.1.0", "2.0.0-rc.1"), clustertest.OfferedAs("", "0.9.0"))
	forged := &corev1alpha1.AvailablePackage{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other.example.com"}}
	forged.Spec.PackageName = "large.example.com"
	other := &corev1alpha1.AvailablePackage{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "own.example.com"}}
	other.Spec.PackageName = "own.example.com"
	objects = append(objects, forged, other)
	for name, test := range map[string]struct {
		refuse bool
		want   string
		note   string
	}{
		"all":       {false, "large.example.com 1.5.0 6; own.example.com  0; shop.example.com 0.9.0 1; shop.example.com 1.1.0 3", ""},
		"forbidden": {true, "large.example.com 1.5.0 6; shop.example.com 0.9.0 1; shop.example.com 1.1.0 3", "those of namespace shop alone are shown"},
	} {
		cl, _ := countedCluster(t, test.refuse, objects...)
		c := watches.NewCatalogue(t.Context(), cl, watches.Start(t.Context(), cl))
		changed, end := c.Subscribe()
		defer end()
		for !c.Shown().Offers.Read {
			c.Refresh(t.Context(), time.Minute)
			select {
			case <-changed:
			case <-t.Context().Done():
			}
		}
		var got []string
		for _, o := range c.Shown().Offers.All {
			got = append(got, fmt.Sprintf("%s %s %d", o.Name, o.Newest, o.Versions))
		}
		if text := strings.Join(got, "; "); text != test.want || !strings.Contains(c.Shown().Offers.Note, test.note) || test.note == "" && c.Shown().Offers.Note != "" {
			t.Errorf("%s: %s (%s)", name, text, c.Shown().Offers.Note)
		}
	}
}
