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

// sightings are what a watch of packages shows, with the time of each.
type sightings struct {
	c       *Cluster
	watch   watch.Interface
	missing map[string]bool
}

// watch begins to look at packages of a namespace.
func (c *Cluster) watch(namespace string, names []string) *sightings {
	c.tb.Helper()
	w, err := c.watcher.Watch(c.tb.Context(), &corev1alpha1.PackageList{}, client.InNamespace(namespace))
	must(c.tb, err)
	s := &sightings{c: c, watch: w, missing: map[string]bool{}}
	for _, name := range names {
		s.missing[name] = true
	}
	return s
}

// wait returns when each package was first seen as rolled out and accepted.
func (s *sightings) wait(accept func(*corev1alpha1.Package) bool) map[string]time.Time {
	s.c.tb.Helper()
	return s.until("rolled out", func(event watch.EventType, pkg *corev1alpha1.Package) bool {
		return event != watch.Deleted && accept(pkg) && rolledOut(pkg)
	})
}

// waitGone returns when each package was seen as gone.
func (s *sightings) waitGone() map[string]time.Time {
	s.c.tb.Helper()
	return s.until("gone", func(event watch.EventType, _ *corev1alpha1.Package) bool { return event == watch.Deleted })
}

func (s *sightings) until(what string, done func(watch.EventType, *corev1alpha1.Package) bool) map[string]time.Time {
	s.c.tb.Helper()
	defer s.watch.Stop()
	seen := map[string]time.Time{}
	last := ""
	for limit := time.After(s.c.timeout()); len(s.missing) > 0; {
		select {
		case event, ok := <-s.watch.ResultChan():
			if !ok {
				s.c.tb.Fatalf("the watch of the packages ended before they were %s", what)
			}
			pkg, ok := event.Object.(*corev1alpha1.Package)
			if !ok {
				s.c.tb.Fatalf("the watch of the packages failed: %v", event.Object)
			}
			last = fmt.Sprintf("%s: %+v", pkg.Name, pkg.Status)
			if s.missing[pkg.Name] && done(event.Type, pkg) {
				seen[pkg.Name] = time.Now()
				delete(s.missing, pkg.Name)
			}
		case <-limit:
			s.c.tb.Fatalf("%d packages are not %s within %s; the last event was %s", len(s.missing), what, s.c.timeout(), last)
		case <-s.c.tb.Context().Done():
			s.c.tb.Fatal(context.Cause(s.c.tb.Context()))
		}
	}
	return seen
}

// rolledOut tells whether the present spec is.
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
