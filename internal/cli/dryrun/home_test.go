package dryrun

import (
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/dryrun/home"
	"lockstep.run/lockstep/internal/limits"
)

// A package may have any number of slices, each of which is patched and deleted; revisions without end are a defect.
func TestSimulationEndsForRevisionsAlone(t *testing.T) {
	t.Parallel()
	c := &simulatedCluster{}
	inMemory, err := home.New(fake.NewClientBuilder().Build(), c.countCreation, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range limits.SimulatedCreates + 1 {
		slice := &corev1alpha1.ObjectSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("web-", i), UID: types.UID(fmt.Sprint(i))}}
		if err := errors.Join(inMemory.Patch(t.Context(), slice, client.RawPatch(types.MergePatchType, []byte("{}"))), inMemory.Delete(t.Context(), slice), c.failed); err != nil {
			t.Fatalf("slice %d: %v", i, err)
		}
	}
	for i := range limits.SimulatedCreates + 1 {
		if c.failed != nil {
			t.Fatalf("revision %d: %v", i, c.failed)
		}
		if err := inMemory.Create(t.Context(), &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("web-", i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if !errors.Is(c.failed, errEndless) {
		t.Errorf("revisions without end: %v", c.failed)
	}
}
