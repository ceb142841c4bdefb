package watches

import (
	"fmt"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/ui/page"
)

// However much some namespaces offer, those of the cluster and of others are shown, and no more than there may be.
func TestNamespacesLeaveRoom(t *testing.T) {
	t.Parallel()
	b := &browser{found: map[[2]string]*page.Offer{}, of: map[string][][2]string{}, share: pageOffersIn}
	add := func(namespace string, count int) {
		for i := range count {
			a := corev1alpha1.ScopeOf(namespace).NewAvailablePackage()
			a.AvailableSpec().PackageName = fmt.Sprintf("p%d.example.com", i)
			a.SetNamespace(namespace)
			a.SetName(repository.ObjectName(a.AvailableSpec().PackageName, 0))
			if !b.add(a) {
				t.Fatalf("the namespace %q ends it with %d offers", namespace, len(b.found))
			}
			if len(b.found) > MaxOffers {
				t.Fatalf("%d offers", len(b.found))
			}
		}
	}
	add("", 10)
	for i := range 6 {
		add(fmt.Sprint("many", i), pageOffersIn+10)
	}
	add("victim", 10)
	shown := map[string]int{}
	for key := range b.found {
		shown[key[0]]++
	}
	if shown[""] != 10 || shown["victim"] != 10 || !b.more || b.share != pageOffersIn/2 {
		t.Errorf("%v, %d of one namespace, more: %t", shown, b.share, b.more)
	}
	for namespace, count := range shown {
		if own := b.of[namespace]; namespace != "" && len(own) != count {
			t.Errorf("%s: %d are counted, %d shown", namespace, len(own), count)
		}
	}
}
