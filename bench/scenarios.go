package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

const (
	scenarioInstall  = "install"
	scenarioRest     = "rest"
	scenarioDrift    = "drift"
	scenarioRecreate = "recreate"
	scenarioUpgrade  = "upgrade"
	scenarioRestart  = "restart"
	scenarioDelete   = "delete"
)

// scenario is something that happens to packages.
type scenario struct {
	name string
	run  func(*bench) measurement
}

// scenarios in the order in which they run: all work on what the first installs,
// so that it runs also where it was not asked for.
var scenarios = []scenario{
	{scenarioInstall, (*bench).install},
	{scenarioRest, (*bench).rest},
	{scenarioDrift, (*bench).drift},
	{scenarioRecreate, (*bench).recreate},
	{scenarioUpgrade, (*bench).upgrade},
	{scenarioRestart, (*bench).restart},
	{scenarioDelete, (*bench).delete},
}

// changedObjects of each package differ in its new revision.
const changedObjects = 1

const packages = "packages." + corev1alpha1.GroupName

var (
	byAdmin   = sandbox.ByUser(sandbox.AdminUser)
	byManager = sandbox.ByUser(harness.ManagerUser())
)

// writeOf accepts the manager's successful writes of one resource.
func writeOf(resource string, more ...sandbox.Filter) sandbox.Filter {
	return all(byManager, sandbox.ByResource(resource), sandbox.Writes(), succeeded, all(more...))
}

// install: from the first package created to the status in which the last one is
// rolled out.
func (b *bench) install() measurement {
	images := make([]string, b.Packages)
	for i := range images {
		images[i] = b.Push(b.tb, packageName(i)+":v1", b.files(i))
	}
	return b.observe(func() (cause, effect sandbox.Filter) {
		seen := b.watch()
		must(b.tb, parallel(rawClients, b.Packages, func(_, i int) error {
			return b.Client.Create(b.tb.Context(), harness.Package(namespace, packageName(i), images[i]))
		}))
		times := seen.wait(func(*corev1alpha1.Package) bool { return true })
		b.expectObjects(b.total())
		return all(byAdmin, sandbox.ByResource(packages), sandbox.ByVerb("create")),
			writeOf(packages, statusOf, knownBy(times))
	})
}

// rest: nothing happens for a while.
func (b *bench) rest() measurement {
	return b.measure(func(mark sandbox.Position) ([]sandbox.Entry, time.Duration) {
		select {
		case <-time.After(b.idle):
		case <-b.tb.Context().Done():
		}
		return b.since(mark), b.idle
	})
}

// drift: from another's change of a field to the write that undoes it.
func (b *bench) drift() measurement {
	name := b.objectName(0)
	return b.observe(func() (cause, effect sandbox.Filter) {
		cm := b.object(name)
		before := cm.DeepCopy()
		cm.Data["value"] = "changed by another"
		must(b.tb, b.Client.Patch(b.tb.Context(), cm, client.MergeFrom(before)))
		harness.Eventually(b.tb, b.timeout(), "the drift to be corrected", func(ctx context.Context) error {
			return b.hasValue(ctx, name, before.Data["value"])
		})
		return all(byAdmin, sandbox.ByResource("configmaps"), sandbox.ByVerb("patch"), named(name, "")),
			writeOf("configmaps", named(name, ""))
	})
}

// recreate: from another's delete of an object to the write that creates it again.
func (b *bench) recreate() measurement {
	name := b.objectName(0)
	return b.observe(func() (cause, effect sandbox.Filter) {
		cm := b.object(name)
		must(b.tb, b.Client.Delete(b.tb.Context(), cm))
		harness.Eventually(b.tb, b.timeout(), "the object to be created again", func(ctx context.Context) error {
			return b.hasValue(ctx, name, cm.Data["value"])
		})
		return all(byAdmin, sandbox.ByResource("configmaps"), sandbox.ByVerb("delete"), named(name, "")),
			writeOf("configmaps", named(name, ""))
	})
}

// upgrade: from the first package's new image to the status in which the last one
// is rolled out.
func (b *bench) upgrade() measurement {
	images := make([]string, b.Packages)
	for i := range images {
		files, phase := b.files(i), b.Phases/2
		name, file := b.objectName(i), phaseName(phase)
		old := harness.ConfigMap(name, file, "v1")
		if !strings.Contains(files[file+".yaml"], old) {
			b.tb.Fatalf("no object %s in %s", name, file)
		}
		files[file+".yaml"] = strings.Replace(files[file+".yaml"], old, harness.ConfigMap(name, file, "v2"), changedObjects)
		images[i] = b.Push(b.tb, packageName(i)+":v2", files)
	}
	return b.observe(func() (cause, effect sandbox.Filter) {
		seen := b.watch()
		must(b.tb, parallel(rawClients, b.Packages, func(_, i int) error {
			patch := fmt.Sprintf(`{"spec":{"image":%q}}`, images[i])
			return b.Client.Patch(b.tb.Context(), harness.Package(namespace, packageName(i), ""), client.RawPatch("application/merge-patch+json", []byte(patch)))
		}))
		times := seen.wait(func(pkg *corev1alpha1.Package) bool { return strings.HasSuffix(pkg.Spec.Image, ":v2") })
		for i := range images {
			must(b.tb, b.hasValue(b.tb.Context(), b.objectName(i), "v2"))
		}
		return all(byAdmin, sandbox.ByResource(packages), sandbox.ByVerb("patch")),
			writeOf(packages, statusOf, knownBy(times))
	})
}

// restart: from the start of the process, after a graceful stop of the one before,
// to the end of its last request. What it does in silence after that is not seen.
func (b *bench) restart() measurement {
	b.manager.Stop()
	return b.measure(func(mark sandbox.Position) ([]sandbox.Entry, time.Duration) {
		started := time.Now()
		b.startManager()
		b.settle(mark)
		entries := b.since(mark)
		var last time.Time
		for _, e := range entries {
			if byManager(e) && e.Object.Resource != "leases" && e.Done.After(last) {
				last = e.Done
			}
		}
		if last.IsZero() {
			b.tb.Fatal(errNoEffect)
		}
		return entries, last.Sub(started)
	})
}

// delete: from the first package deleted to the request that lets the last one
// go, or to the last delete of an object where that is later.
func (b *bench) delete() measurement {
	return b.observe(func() (cause, effect sandbox.Filter) {
		seen := b.watch()
		must(b.tb, parallel(rawClients, b.Packages, func(_, i int) error {
			return b.Client.Delete(b.tb.Context(), harness.Package(namespace, packageName(i), ""))
		}))
		times := seen.waitGone()
		harness.Eventually(b.tb, b.timeout(), "the objects to be gone", func(ctx context.Context) error { return b.countObjects(ctx, 0) })
		finalizer := writeOf(packages, func(e sandbox.Entry) bool { return e.Object.Subresource == "" }, knownBy(times))
		object := writeOf("configmaps", sandbox.ByVerb("delete"))
		return all(byAdmin, sandbox.ByResource(packages), sandbox.ByVerb("delete")),
			func(e sandbox.Entry) bool { return finalizer(e) || object(e) }
	})
}

func statusOf(e sandbox.Entry) bool { return e.Object.Subresource == "status" }

func packageName(i int) string { return fmt.Sprintf("shop-%03d", i) }

// phaseName is what harness.Phased calls a phase.
func phaseName(i int) string { return fmt.Sprintf("phase-%02d", i) }

func (b *bench) files(i int) harness.Files {
	return harness.Phased(packageName(i), b.Phases, b.Objects/b.Phases)
}

// objectName is the name of the object in the middle of a package.
func (b *bench) objectName(i int) string {
	return fmt.Sprintf("%s-%02d-%03d", packageName(i), b.Phases/2, b.Objects/b.Phases/2)
}

func (b *bench) object(name string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{}
	must(b.tb, b.Client.Get(b.tb.Context(), client.ObjectKey{Namespace: namespace, Name: name}, cm))
	return cm
}

func (b *bench) hasValue(ctx context.Context, name, want string) error {
	cm := &corev1.ConfigMap{}
	if err := b.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cm); err != nil {
		return err
	}
	if cm.Data["value"] != want {
		return fmt.Errorf("%s has the value %q, want %q", name, cm.Data["value"], want)
	}
	return nil
}

func (b *bench) expectObjects(want int) {
	b.tb.Helper()
	must(b.tb, b.countObjects(b.tb.Context(), want))
}

// countObjects compares the number of the packages' objects.
func (b *bench) countObjects(ctx context.Context, want int) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := b.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	got := 0
	for _, item := range list.Items {
		if strings.HasPrefix(item.Name, "shop-") {
			got++
		}
	}
	if got != want {
		return fmt.Errorf("%d objects are there, want %d", got, want)
	}
	return nil
}

// sightings are what a watch of the packages shows, with the time of each.
type sightings struct {
	b       *bench
	tb      testing.TB
	watch   watch.Interface
	missing map[string]bool
}

// watch begins to look at the packages.
func (b *bench) watch() *sightings {
	w, err := b.watcher.Watch(b.tb.Context(), &corev1alpha1.PackageList{}, client.InNamespace(namespace))
	must(b.tb, err)
	s := &sightings{b: b, tb: b.tb, watch: w, missing: map[string]bool{}}
	for i := range b.Packages {
		s.missing[packageName(i)] = true
	}
	return s
}

// wait returns when each package was first seen as rolled out and accepted.
func (s *sightings) wait(accept func(*corev1alpha1.Package) bool) map[string]time.Time {
	return s.until("rolled out", func(event watch.EventType, pkg *corev1alpha1.Package) bool {
		return event != watch.Deleted && accept(pkg) && rolledOut(pkg)
	})
}

// waitGone returns when each package was seen as gone.
func (s *sightings) waitGone() map[string]time.Time {
	return s.until("gone", func(event watch.EventType, _ *corev1alpha1.Package) bool { return event == watch.Deleted })
}

func (s *sightings) until(what string, done func(watch.EventType, *corev1alpha1.Package) bool) map[string]time.Time {
	s.tb.Helper()
	defer s.watch.Stop()
	seen := map[string]time.Time{}
	last := ""
	for limit := time.After(s.b.timeout()); len(s.missing) > 0; {
		select {
		case event, ok := <-s.watch.ResultChan():
			if !ok {
				s.tb.Fatalf("the watch of the packages ended before they were %s", what)
			}
			pkg, ok := event.Object.(*corev1alpha1.Package)
			if !ok {
				s.tb.Fatalf("the watch of the packages failed: %v", event.Object)
			}
			last = fmt.Sprintf("%s: %+v", pkg.Name, pkg.Status)
			if s.missing[pkg.Name] && done(event.Type, pkg) {
				seen[pkg.Name] = time.Now()
				delete(s.missing, pkg.Name)
			}
		case <-limit:
			s.tb.Fatalf("%d packages are not %s within %s; the last event was %s", len(s.missing), what, s.b.timeout(), last)
		case <-s.tb.Context().Done():
			s.tb.Fatal(context.Cause(s.tb.Context()))
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
