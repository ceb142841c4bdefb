package measure

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

const packages = "packages." + corev1alpha1.GroupName

// sightings are the states of packages that a watch shows, with their times.
type sightings struct {
	c         *Cluster
	namespace string
	watch     watch.Interface
	missing   map[string]bool
	seen      map[string]time.Time
	// last is the last event in words.
	last string
}

// done reports whether the present state of a package, or nil if it does not exist, is the expected
// one.
type done func(*corev1alpha1.Package) bool

// watch starts watching packages of a namespace.
func (c *Cluster) watch(namespace string, names []string) *sightings {
	c.tb.Helper()
	s := &sightings{c: c, namespace: namespace, missing: map[string]bool{}, seen: map[string]time.Time{}}
	for _, name := range names {
		s.missing[name] = true
	}
	s.begin("")
	return s
}

func (s *sightings) begin(resourceVersion string) {
	s.c.tb.Helper()
	opts := &client.ListOptions{Namespace: s.namespace, Raw: &metav1.ListOptions{ResourceVersion: resourceVersion}}
	w, err := s.c.watcher.Watch(s.c.tb.Context(), &corev1alpha1.PackageList{}, opts)
	must(s.c.tb, err)
	s.watch = w
}

// wait returns when each package was first seen as rolled out and accepted.
func (s *sightings) wait(accept func(*corev1alpha1.Package) bool) map[string]time.Time {
	s.c.tb.Helper()
	return s.until("rolled out", func(pkg *corev1alpha1.Package) bool { return pkg != nil && accept(pkg) && rolledOut(pkg) })
}

// waitGone returns when each package was seen to be deleted.
func (s *sightings) waitGone() map[string]time.Time {
	s.c.tb.Helper()
	return s.until("gone", func(pkg *corev1alpha1.Package) bool { return pkg == nil })
}

func (s *sightings) until(what string, done done) map[string]time.Time {
	s.c.tb.Helper()
	defer func() { s.watch.Stop() }()
	for limit := time.After(s.c.timeout()); len(s.missing) > 0; {
		select {
		case event, ok := <-s.watch.ResultChan():
			pkg, is := event.Object.(*corev1alpha1.Package)
			switch {
			case !ok || !is: // an API server under load ends watches
				s.again(done)
			case event.Type == watch.Deleted:
				s.see(pkg.Name, nil, done)
			default:
				s.see(pkg.Name, pkg, done)
			}
		case <-limit:
			s.c.tb.Fatalf("%d packages are not %s within %s; the last event was %s", len(s.missing), what, s.c.timeout(), s.last)
		case <-s.c.tb.Context().Done():
			s.c.tb.Fatal(context.Cause(s.c.tb.Context()))
		}
	}

	return s.seen
}

// see records the state of a package.
func (s *sightings) see(name string, pkg *corev1alpha1.Package, done done) {
	s.last = name + " no longer exists"
	if pkg != nil {
		s.last = fmt.Sprintf("%s: %+v", name, pkg.Status)
	}
	if s.missing[name] && done(pkg) {
		s.seen[name] = time.Now()
		delete(s.missing, name)
	}
}

// again lists all packages and watches from there.
func (s *sightings) again(done done) {
	s.c.tb.Helper()
	s.watch.Stop()
	list := &corev1alpha1.PackageList{}
	must(s.c.tb, s.c.Client.List(s.c.tb.Context(), list, client.InNamespace(s.namespace)))
	present := map[string]*corev1alpha1.Package{}
	for i := range list.Items {
		present[list.Items[i].Name] = &list.Items[i]
	}
	for name := range s.missing {
		s.see(name, present[name], done)
	}
	s.begin(list.ResourceVersion)
}

// rolledOut reports whether the present spec is rolled out.
func rolledOut(pkg *corev1alpha1.Package) bool {
	has := func(typ string, status metav1.ConditionStatus) bool {
		for _, c := range *pkg.StatusConditions() {
			if c.Type == typ {
				return c.Status == status && c.ObservedGeneration == pkg.Generation
			}
		}
		return false
	}
	return pkg.PackageStatus().ObservedGeneration == pkg.Generation &&
		has(corev1alpha1.ConditionAvailable, metav1.ConditionTrue) && has(corev1alpha1.ConditionProgressing, metav1.ConditionFalse)
}
