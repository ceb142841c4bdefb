package packages

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/summary"
	"lockstep.run/lockstep/internal/testing/metricstest"
)

// cached is a cache of packages.
type cached struct {
	client.Reader
	packages        []corev1alpha1.Package
	clusterPackages []corev1alpha1.ClusterPackage
}

func (c *cached) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch l := list.(type) {
	case *corev1alpha1.PackageList:
		l.Items = c.packages
	case *corev1alpha1.ClusterPackageList:
		l.Items = c.clusterPackages
	}
	return nil
}

// withNames leaves out the series without names.
func withNames(values map[string]float64) map[string]float64 {
	for name := range values {
		for _, prefix := range []string{"lockstep_packages ", "lockstep_metrics_packages ", "lockstep_targets ", "lockstep_dependencies "} {
			if strings.HasPrefix(name, prefix) {
				delete(values, name)
			}
		}
	}
	return values
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	memory := &memory{}
	m := &exporter{memory: memory, reader: &cached{
		packages: []corev1alpha1.Package{*unpackedPackage(func(p *corev1alpha1.Package) {
			p.CreationTimestamp = metav1.Time{Time: time.Unix(1000, 0)}
			p.Generation, p.Status.Revision, p.Status.CurrentVersion = 0, 3, "1.2.3"
			p.Status.Conditions = []metav1.Condition{conditionOf("Available", "True", "X"), conditionOf("Ready", "True", "X")}
		})},
		clusterPackages: []corev1alpha1.ClusterPackage{{ObjectMeta: metav1.ObjectMeta{Name: "big", UID: "other"}}},
	}}
	key := types.NamespacedName{Namespace: "team", Name: "shop"}
	memory.states = map[types.NamespacedName]*state{
		key:           {uid: "pkg-uid", loads: 2, took: 1500 * time.Millisecond},
		{Name: "big"}: {uid: "former", loads: 1, took: time.Second},
	}
	want := map[string]float64{
		"package_operator_package_availability registry.test/shop:v1 shop team": 1,
		"package_operator_package_created_timestamp_seconds shop team":          1000,
		"package_operator_package_load_duration_seconds shop team":              1.5,
		"package_operator_package_revision shop team":                           3,
		"lockstep_package_loads_total shop team":                                2,
		"lockstep_package_summary shop team Available 1.2.3":                    1,
		"package_operator_package_availability  big ":                           2,
		"package_operator_package_created_timestamp_seconds big ":               float64((&metav1.Time{}).Unix()),
		"package_operator_package_revision big ":                                0,
		"lockstep_package_summary big  Pending ":                                1,
	}
	if diff := cmp.Diff(want, withNames(metricstest.Values(t, m))); diff != "" {
		t.Error(diff)
	}
	delete(memory.states, key)
	delete(want, "package_operator_package_load_duration_seconds shop team")
	delete(want, "lockstep_package_loads_total shop team")
	if diff := cmp.Diff(want, withNames(metricstest.Values(t, m))); diff != "" {
		t.Error(diff)
	}
}

// While something blocks a package there is a series that says since when and what, and one only.
func TestMetricsOfBlockedPackages(t *testing.T) {
	t.Parallel()
	at := func(c metav1.Condition, seconds int64) metav1.Condition {
		c.LastTransitionTime, c.ObservedGeneration = metav1.Time{Time: time.Unix(seconds, 0)}, 2
		return c
	}
	blocking := []corev1alpha1.BlockingObject{{Kind: "Deployment", Name: "web", Phase: "app"}, {Kind: "Deployment", Name: "more", Phase: "last"}}
	for _, tc := range []struct {
		reason     string
		conditions []metav1.Condition
		blocking   []corev1alpha1.BlockingObject
		change     func(*corev1alpha1.Package)
		want       string
	}{
		{"available", []metav1.Condition{at(conditionOf("Ready", "True", "Available"), 5)}, nil, nil, ""},
		{"on its way", []metav1.Condition{at(conditionOf("Ready", "False", "Progressing"), 5)}, nil, nil, ""},
		{"paused", []metav1.Condition{at(conditionOf("Ready", "False", "X"), 5), at(conditionOf("Paused", "True", "Paused"), 6)}, blocking, nil, ""},
		{
			"waits for an object", []metav1.Condition{at(conditionOf("Ready", "False", "ProbeFailure"), 5)}, blocking, nil,
			"lockstep_package_blocked_since_seconds app shop team ProbeFailure 5",
		},
		{
			"since the first trouble", []metav1.Condition{at(conditionOf("Ready", "False", "X"), 5), at(conditionOf("Stalled", "True", "CollisionDetected"), 9)}, blocking, nil,
			"lockstep_package_blocked_since_seconds app shop team CollisionDetected 5",
		},
		{
			"invalid", []metav1.Condition{at(conditionOf("Invalid", "True", "ConfigInvalid"), 7)}, nil, nil,
			"lockstep_package_blocked_since_seconds  shop team ConfigInvalid 7",
		},
		{
			"being deleted", []metav1.Condition{at(conditionOf("Ready", "False", "X"), 5)}, blocking, deletedAt(11),
			"lockstep_package_deleting_since_seconds app shop team TearingDown 11",
		},
		{
			"its deletion is held", []metav1.Condition{at(conditionOf("DeletionHeld", "True", "Required"), 12)}, nil, deletedAt(11),
			"lockstep_package_deleting_since_seconds  shop team Required 11",
		},
	} {
		pkg := unpackedPackage(func(p *corev1alpha1.Package) {
			p.Generation, p.Status.Conditions, p.Status.Blocking = 2, tc.conditions, tc.blocking
			if tc.change != nil {
				tc.change(p)
			}
		})
		got := ""
		for name, value := range metricstest.Values(t, &exporter{memory: &memory{}, reader: &cached{packages: []corev1alpha1.Package{*pkg}}}) {
			if strings.Contains(name, "_since_seconds ") {
				got += fmt.Sprintf("%s %v", name, value)
			}
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}

func deletedAt(seconds int64) func(*corev1alpha1.Package) {
	return func(p *corev1alpha1.Package) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(seconds, 0)} }
}

// However many packages there are, and whatever they say, series and their labels are bounded, and no namespace takes those of
// others.
func TestMetricsAreBounded(t *testing.T) {
	t.Parallel()
	c := &cached{}
	add := func(namespace string, n int) {
		for i := range n {
			pkg := corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("p%d", i), UID: types.UID(fmt.Sprintf("%s%d", namespace, i))}}
			pkg.Spec.Image = strings.Repeat("x", 4096)
			pkg.Status.CurrentVersion = strings.Repeat("\"}\n9", 1024) + string(rune(i)) + "\xff"
			pkg.Status.Conditions = []metav1.Condition{conditionOf("Invalid", "True", strings.Repeat("r", 2000))}
			pkg.Status.Blocking = []corev1alpha1.BlockingObject{{Phase: strings.Repeat("p", 2000)}}
			c.packages = append(c.packages, pkg)
		}
	}
	add("many", limits.MetricPackages)
	add("more", limits.MetricPackagesNamed-limits.MetricPackages)
	add("own", 10)
	values := metricstest.Values(t, &exporter{memory: &memory{}, reader: c})
	detail := func(word string) int { return int(values["lockstep_metrics_packages "+word]) }
	if detail("full") != 10 || detail("reduced") != limits.MetricPackagesNamed-10 || detail("omitted") != 10 {
		t.Errorf("%d full, %d reduced, %d omitted", detail("full"), detail("reduced"), detail("omitted"))
	}
	if all := values["lockstep_packages Invalid"]; int(all) != len(c.packages) {
		t.Errorf("%v packages are invalid, want %d", all, len(c.packages))
	}
	if want := 3*limits.MetricPackagesNamed + 2*10 + 60; len(values) > want {
		t.Errorf("%d series, want at most %d", len(values), want)
	}
	for name := range values {
		if len(name) > 5*limits.MetricLabelBytes {
			t.Fatalf("a series has %d bytes: %s", len(name), name)
		}
	}
}

// A tenant with fewer packages than another namespace silences no alert there, and alerts select nothing but the series that stay.
func TestAlertsOfOthersStay(t *testing.T) {
	t.Parallel()
	const most, half = limits.MetricPackagesNamed, limits.MetricPackagesNamed / 2
	stay := map[string]bool{}
	for _, tc := range []struct {
		reason         string
		tenant         int
		ready          string // of the tenant's packages
		others, broken int    // packages of another namespace that are available, and that are not
		omitted        int    // of those that are available
	}{
		{"one is broken beside broken ones", half, "False", half + 1, 1, half + 1},
		{"all are broken beside available ones", half, "True", 0, half + 1, half},
		{"some are broken beside available ones", most - 50, "True", most - 100, 51, most - 50},
	} {
		c := &cached{}
		add := func(namespace string, n int, ready string) {
			for i := range n {
				c.packages = append(c.packages, *readyPackage(namespace, fmt.Sprintf("%s-%d", ready, i), ready))
			}
		}
		add("tenant", tc.tenant, tc.ready)
		add("other", tc.others, "True")
		add("other", tc.broken, "False")
		values := metricstest.Values(t, &exporter{memory: &memory{}, reader: c})
		detail := func(word string) int { return int(values["lockstep_metrics_packages "+word]) }
		if reduced := tc.tenant + tc.others + tc.broken - tc.omitted; reduced > most || detail("full") != 0 || detail("reduced") != reduced || detail("omitted") != tc.omitted {
			t.Errorf("%s: %d packages have all series, %d three, %d none", tc.reason, detail("full"), detail("reduced"), detail("omitted"))
		}
		series := map[string]int{}
		for name := range values {
			if fields := strings.Fields(name); slices.Contains(fields, "other") && strings.Contains(name, " False-") {
				stay[fields[0]] = true
				series[fields[0]]++
			}
		}
		for name := range stay {
			if series[name] != tc.broken {
				t.Errorf("%s: %d broken packages of another namespace have %s, want %d", tc.reason, series[name], name, tc.broken)
			}
		}
	}
	if len(stay) != 3 {
		t.Errorf("packages of another namespace that are not available have %v", stay)
	}
	rules, err := os.ReadFile("../../../config/monitoring/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	selected := regexp.MustCompile(`\b(lockstep|package_operator)_package_\w+`).FindAllString(string(rules), -1)
	if len(selected) == 0 {
		t.Fatal("no alert is about packages")
	}
	for _, name := range selected {
		if !stay[name] {
			t.Errorf("an alert selects %s, which not every package has", name)
		}
	}
}

// readyPackage returns a package that is ready and available since a time, or is not.
func readyPackage(namespace, name, ready string) *corev1alpha1.Package {
	return unpackedPackage(func(p *corev1alpha1.Package) {
		p.Generation, p.Namespace, p.Name, p.UID = 0, namespace, name, types.UID(namespace+name)
		p.Status.Conditions = []metav1.Condition{conditionOf("Available", ready, "X"), conditionOf("Ready", ready, "X")}
		p.Status.Conditions[1].LastTransitionTime = metav1.Unix(5, 0)
		if ready == "False" {
			p.Status.Blocking = []corev1alpha1.BlockingObject{{Phase: "app"}}
		}
	})
}

// Whatever packages there are, in whatever order they are listed, no more have series than may, and none that alerts may be about lacks
// them because of an available one or of a namespace with more such packages.
func TestDetails(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		fullMost := rapid.IntRange(0, 10).Draw(t, "full")
		most := fullMost + rapid.IntRange(0, 20).Draw(t, "reduced")
		var all []corev1alpha1.GenericPackage
		words := map[types.NamespacedName]summary.Summary{}
		owners := map[string]int{}
		for _, namespace := range []string{"", "a", "b", "c", "d"} {
			for i, word := range rapid.SliceOfN(rapid.SampledFrom(summary.All()), 0, 15).Draw(t, "packages of "+namespace) {
				pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("p%02d", i)}}
				all, words[keyOf(pkg)] = append(all, pkg), word
				owners[namespace]++
			}
		}
		decide := func(listed []corev1alpha1.GenericPackage) map[types.NamespacedName]string {
			listedWords, decided := make([]summary.Summary, len(listed)), map[types.NamespacedName]string{}
			for i, pkg := range listed {
				listedWords[i] = words[keyOf(pkg)]
			}
			for i, detail := range detailsOf(listed, listedWords, fullMost, most) {
				decided[keyOf(listed[i])] = detail
			}
			return decided
		}
		decided := decide(all)
		if again := decide(rapid.Permutation(all).Draw(t, "listed")); !maps.Equal(decided, again) {
			t.Fatalf("%v, listed in another order %v", decided, again)
		}
		numbers, reduced := map[string]int{}, map[string]int{}
		for key, detail := range decided {
			numbers[detail]++
			if detail == "reduced" && amiss(words[key]) {
				reduced[key.Namespace]++
			}
		}
		if numbers["full"] > fullMost || numbers["full"]+numbers["reduced"] > most || numbers["omitted"] > 0 && len(all) <= most {
			t.Fatalf("%v of %d packages", numbers, len(all))
		}
		for silent, detail := range decided {
			if detail != "omitted" || !amiss(words[silent]) {
				continue
			}
			for named, detail := range decided {
				switch {
				case detail == "full" && named.Namespace != "" && owners[named.Namespace] > owners[silent.Namespace],
					detail == "reduced" && !amiss(words[named]),
					detail == "reduced" && named.Namespace != "" && (silent.Namespace == "" || reduced[named.Namespace] > reduced[silent.Namespace]+1),
					detail == "reduced" && named.Namespace == silent.Namespace && named.Name > silent.Name:
					t.Fatalf("%s, %s, has no series, and %s, %s, has %s", silent, words[silent], named, words[named], detail)
				}
			}
		}
		if left := most - numbers["full"]; left > 0 && numbers["reduced"] < left && slices.ContainsFunc(all, func(pkg corev1alpha1.GenericPackage) bool {
			return decided[keyOf(pkg)] == "omitted" && amiss(words[keyOf(pkg)])
		}) {
			t.Fatalf("%v: more may have series", numbers)
		}
	})
}

// BenchmarkMetrics collects and writes the series of 1,000 packages, without those of their revisions, which are two more each.
func BenchmarkMetrics(b *testing.B) {
	c := &cached{}
	states := map[types.NamespacedName]*state{}
	for i := range 1000 {
		pkg := unpackedPackage(func(p *corev1alpha1.Package) {
			p.Generation, p.Name, p.UID = 0, fmt.Sprintf("shop-%d", i), types.UID(fmt.Sprint(i))
			p.Status.Conditions = []metav1.Condition{conditionOf("Available", "True", "X"), conditionOf("Ready", "True", "X")}
		})
		c.packages = append(c.packages, *pkg)
		states[keyOf(pkg)] = &state{uid: pkg.UID, loads: 1, took: time.Second}
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(&exporter{reader: c, memory: &memory{states: states}})
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	var text string
	for b.Loop() {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		text = answer.Body.String()
	}
	b.ReportMetric(float64(strings.Count("\n"+text, "\n")-strings.Count("\n"+text, "\n#")-1), "series")
	b.ReportMetric(float64(len(text)), "bytes")
}
