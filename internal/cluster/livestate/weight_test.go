package livestate

import (
	"fmt"
	"math/rand/v2"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/objects"
)

// The memory of records is that of those that are there, whatever came before.
func TestWeight(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		k := newKind(schema.GroupKind{Kind: "ConfigMap"})
		var held int64
		for i := range 200 {
			n := name{Namespace: "default", Name: fmt.Sprint("object-", random.IntN(10))}
			obs := &objects.Observed{
				UID: types.UID(fmt.Sprint("u", random.IntN(20))), ResourceVersion: fmt.Sprint(random.IntN(i + 1)), Held: fmt.Sprint(random.Uint64() >> random.IntN(64)),
				Owners: make([]objects.Reference, random.IntN(3)),
			}
			for j := range obs.Owners {
				obs.Owners[j].OwnerReference = metav1.OwnerReference{Name: n.Name, UID: obs.UID}
			}
			switch random.IntN(6) {
			case 0:
				k.records.Remove(n, obs.UID, obs.ResourceVersion)
			case 1:
				k.records.Remember(n, obs)
			case 2:
				k.records.Gone(n, obs.UID)
			case 3:
				k.records.Replace([]Change{{Name: n, Observed: obs}}, obs.ResourceVersion)
			case 4:
				k.records.confirm(n, obs.UID, obs.ResourceVersion)
			default:
				k.records.Put(n, obs)
			}
			held += k.change()
			var want int64
			for n, obs := range k.records.byName {
				want += weigh(n, obs)
			}
			if k.records.weight != want || held != want {
				t.Fatalf("seed %d, step %d: weight %d, held %d, want %d", seed, i, k.records.weight, held, want)
			}
		}
		k.follow(nil, false)
		if held += k.change(); held != 0 {
			t.Fatalf("seed %d: %d bytes are held of nothing", seed, held)
		}
	}
}
