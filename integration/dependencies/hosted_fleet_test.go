package dependencies_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// In a fleet of many hosted clusters in groups, some of them fail on the way, and the manager is
// killed. The number of Packages in an update never exceeds the limit for unavailable ones. Groups
// are updated in order, and in the end all Packages are. The test is not parallel.
func TestFleet(t *testing.T) {
	clusters, groups, most, kills := 10, 2, 2, 1
	if harness.Deep() {
		clusters, groups, most, kills = 40, 4, 3, 4
	}
	random := rand.New(rand.NewPCG(11, uint64(clusters)))
	var names, order []string
	for i := range clusters {
		names = append(names, fmt.Sprintf("c%02d/g%d", i, i%groups))
	}
	for g := range groups {
		order = append(order, fmt.Sprint("g", g))
	}
	f := newFleet(t, names...)
	f.install(t, "v1", rolling(most, order...))
	f.rolledOut(t)
	j := env.Journal(t)
	f.upgrade(t, "v2")
	ill := []string{}
	for step := 1; step <= 2*kills; step++ {
		f.updated(t, step*clusters/(2*kills+1))
		for _, cluster := range ill {
			f.setIll(t, cluster, false)
		}
		ill = ill[:0]
		for range most - 1 {
			ill = append(ill, strings.Split(names[random.IntN(clusters)], "/")[0])
			f.setIll(t, ill[len(ill)-1], true)
		}
		if step%2 == 1 {
			manager.Kill()
			env.ClearLease(t)
			manager = env.StartManager(suite, "--pace=0.1")
		}
	}
	for _, cluster := range ill {
		f.setIll(t, cluster, false)
	}
	f.rolledOut(t)
	f.checkUpdates(t, j, names, most)
}

// updated waits until a number of Packages have been updated, or failed ones block the others.
func (f *fleet) updated(t *testing.T, n int) {
	t.Helper()
	last, since := int32(-1), time.Now()
	await(t, f.object(), fmt.Sprintf("has updated %d", n), func(h *corev1alpha1.HostedClusterPackage) error {
		if h.Status.UpdatedPackages != last {
			last, since = h.Status.UpdatedPackages, time.Now()
		}
		if int(last) >= n || time.Since(since) > 5*time.Second {
			return nil
		}
		return fmt.Errorf("%+v", h.Status)
	})
}

// checkUpdates reads the audit log: a Package is being updated from its apply until the test has
// made its ConfigMap available again.
func (f *fleet) checkUpdates(t *testing.T, j *harness.Journal, names []string, most int) {
	t.Helper()
	entries, err := j.Since(t.Context(), j.From)
	require.NoError(t, err)
	// Sort by arrival, because the effects of a request can precede its response.
	slices.SortStableFunc(entries, func(a, b sandbox.Entry) int { return a.Received.Compare(b.Received) })
	group := map[string]string{}
	for _, name := range names {
		cluster, risk, _ := strings.Cut(name, "/")
		group[cluster] = risk
	}
	updating, rendered, done, peak, last := map[string]bool{}, map[string]bool{}, map[string]bool{}, 0, ""
	for _, e := range entries {
		cluster, ours := strings.CutPrefix(e.Object.Namespace, f.name+"-")
		if !ours || e.Verb != "patch" || e.Code != http.StatusOK || e.Object.Subresource != "" {
			continue
		}
		byManager := e.User == harness.ManagerUser()
		switch {
		case byManager && e.Object.Resource == "packages" && strings.Contains(e.RequestURI, "fieldManager=package-operator"):
			if done[cluster] || updating[cluster] {
				continue // sent again after the manager was killed
			}
			updating[cluster] = true
			if peak = max(peak, len(updating)); len(updating) > most {
				t.Errorf("%d are updated at a time, more than %d: %v", len(updating), most, updating)
			}
			if group[cluster] < last {
				t.Errorf("%s of group %s is updated after one of group %s", cluster, group[cluster], last)
			}
			last = group[cluster]
			for other := range updating {
				if group[other] < last {
					t.Errorf("%s of group %s is updated while %s of group %s is", cluster, last, other, group[other])
				}
			}
		case byManager && e.Object.Resource == "configmaps":
			rendered[cluster] = updating[cluster]
		case rendered[cluster] && updating[cluster] && strings.Contains(e.RequestURI, "fieldManager="+attendant):
			delete(updating, cluster)
			done[cluster] = true
		}
	}
	if len(done) != len(names) {
		t.Errorf("%d of %d were updated", len(done), len(names))
	}
	if peak != most {
		t.Errorf("at most %d were updated at a time, the limit is %d", peak, most)
	}
	entries = slices.DeleteFunc(entries, func(e sandbox.Entry) bool {
		return e.User != harness.ManagerUser() || e.Verb == "watch" || e.Object.Resource != "hostedclusterpackages" && e.Object.Resource != "packages"
	})
	t.Logf("%d Packages, at most %d updated at a time: %v", len(done), peak, harness.Tally(entries))
}
