package engine_test

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/claims"
	"lockstep.run/lockstep/internal/probes"
	"lockstep.run/lockstep/test/memory"
)

var (
	configMaps  = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	deployments = appsv1.SchemeGroupVersion.WithKind("Deployment")

	// names are the names of a group that installs shops. Its objects have these labels and
	// annotations, and others are ignored.
	names = &objects.Names{
		GroupVersion: schema.GroupVersion{Group: "example.com", Version: "v1"},
		FieldManager: "shop-installer",
		ManagedLabel: "example.com/managed", ManagedValue: "true",
		InheritedLabels:          []string{"example.com/release"},
		RevisionAnnotation:       "example.com/revision",
		OwnersAnnotation:         "example.com/owners",
		DeletionPolicyAnnotation: "example.com/deletion", DeletionPolicyKeep: "keep",
	}

	shop = objects.Owner{Names: names, OwnerKey: objects.OwnerKey{Kind: "Shop", Namespace: "shop", Name: "shop"}, UID: "shop-1"}
)

// desired returns an object without content.
func desired(kind schema.GroupVersionKind, name string) *objects.Desired {
	key := objects.Key{Group: kind.Group, Kind: kind.Kind, Namespace: shop.Namespace, Name: name}
	d, err := engine.NewDesired(names, key, kind.Version, map[string]any{
		"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "metadata": map[string]any{"name": name},
	})
	if err != nil {
		panic(err)
	}
	return d
}

// available is true of Deployments with that condition.
func available() *probes.Set {
	set, err := probes.Compile([]probes.Entry{{
		Selector: probes.Selector{Kind: &probes.GroupKind{Group: deployments.Group, Kind: deployments.Kind}},
		Probes:   []probes.Probe{{Condition: &probes.Condition{Type: "Available", Status: "True"}}},
	}})
	if err != nil {
		panic(err)
	}
	return set
}

// notes is a store that does not keep its records. Only Jobs would need the methods that it lacks.
type notes struct{ engine.Store }

func (notes) Claimed(context.Context, *engine.Revision) error {
	fmt.Println("  record that the objects are claimed")
	return nil
}

func (notes) Opened(_ context.Context, rev *engine.Revision) error {
	fmt.Println("  record that phases are open:", rev.Opened())
	return nil
}

func (notes) Started(context.Context, *engine.Revision) error { return nil }

func (notes) SucceedsAt(context.Context, *engine.Revision) (time.Time, error) {
	return time.Time{}, nil
}

func (notes) Succeeded(context.Context, *engine.Revision) error {
	fmt.Println("  record that the revision has succeeded")
	return nil
}

// Three objects are rolled out in order: the frontend is written when the backend is available.
func Example() {
	// The cluster is in memory here. Its watches report objects to the tracker.
	server := memory.NewServer(names, time.Now, memory.Kind{GroupVersionKind: configMaps}, memory.Kind{GroupVersionKind: deployments})
	tracker, here := tracking.New(names), server.Connect()
	here.Observe, here.Changed, here.KindChanged = tracker.Observe, tracker.Changed, tracker.KindChanged
	here.Send = func(_ context.Context, r memory.Request, do func() error) error {
		if r.Writes() {
			fmt.Println(" ", r.Verb, r.Key)
		}
		return do()
	}
	tracker.Wake = func(objects.OwnerKey) {} // a controller enqueues the owner
	rollOut := &engine.Engine{Cluster: here, Tracker: tracker, Pool: engine.NewPool(1, 1)}

	// A revision has phases, whose objects are probed.
	rev := engine.NewRevision()
	rev.Identify("shop", "shop-1", "")
	rev.Metadata = objects.ManagedMetadata{Owner: shop, Revision: 1, Labels: map[string]string{"example.com/release": "spring"}}
	rev.Phases = []phases.Phase{
		{Name: "backend", Objects: []*objects.Desired{desired(configMaps, "settings"), desired(deployments, "backend")}},
		{Name: "frontend", Objects: []*objects.Desired{desired(deployments, "frontend")}},
	}
	rev.SetProbes(available())

	// The owner puts the revision into its rollout, and takes steps until none is due.
	owner := engine.New(shop)
	owner.Claims = claims.NewTable(func(objects.Owner) {})
	owner.Put(rev)
	reconcile := func() {
		owner.Start(time.Now, time.Second)
		for again := true; again; {
			out, err := rollOut.Step(context.Background(), owner, engine.Want{Current: rev.UID, Store: notes{}})
			if err != nil {
				panic(err)
			}
			again = out.Again
			for _, kind := range []schema.GroupVersionKind{configMaps, deployments} {
				again = here.Sync(kind.GroupKind()) || again
				again = here.Deliver(kind.GroupKind()) || again
			}
		}
		for _, b := range owner.Report(rev.UID).Blocking {
			fmt.Println("  wait for", b.Key)
		}
	}
	becomeAvailable := func(name string) {
		key := objects.Key{Group: deployments.Group, Kind: deployments.Kind, Namespace: shop.Namespace, Name: name}
		live := server.Get(key).DeepCopy()
		_ = unstructured.SetNestedField(live.Object, live.GetGeneration(), "status", "observedGeneration")
		_ = unstructured.SetNestedSlice(live.Object, []any{map[string]any{"type": "Available", "status": "True"}}, "status", "conditions")
		if _, err := server.UpdateStatus(key, live); err != nil {
			panic(err)
		}
	}

	fmt.Println("first:")
	reconcile()
	becomeAvailable("backend")
	fmt.Println("the backend is available:")
	reconcile()
	becomeAvailable("frontend")
	fmt.Println("the frontend is available:")
	reconcile()
	frontend := server.Get(objects.Key{Group: deployments.Group, Kind: deployments.Kind, Namespace: shop.Namespace, Name: "frontend"})
	fmt.Println("its labels:", frontend.GetLabels())
	fmt.Println("its annotations:", frontend.GetAnnotations())
	fmt.Println("its owner:", frontend.GetOwnerReferences()[0].APIVersion, frontend.GetOwnerReferences()[0].Kind)
	fmt.Println("its field manager:", frontend.GetManagedFields()[0].Manager)
	// Output:
	// first:
	//   record that the objects are claimed
	//   create ConfigMap shop/settings
	//   create apps Deployment shop/backend
	//   wait for apps Deployment shop/backend
	// the backend is available:
	//   record that phases are open: 2
	//   create apps Deployment shop/frontend
	//   wait for apps Deployment shop/frontend
	// the frontend is available:
	//   record that the revision has succeeded
	// its labels: map[example.com/managed:true example.com/release:spring]
	// its annotations: map[example.com/revision:1]
	// its owner: example.com/v1 Shop
	// its field manager: shop-installer
}
