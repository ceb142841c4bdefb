package tenants_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/testing/require"
)

// One tenant installs so many packages that not all have their series any more: the tenant's keep those that alerts are made of, also
// the one that is broken, and those of another namespace keep all. All come back once there are fewer packages. Ten scrapes a second
// cost the API server nothing.
func TestSeriesOfManyPackages(t *testing.T) {
	if !harness.Deep() {
		t.Skip("takes five minutes and all processors: a sweep of ./task test:deep")
	}
	const full, reduced = 12, 3
	e := harness.New(t, sandbox.WithoutNodes(), sandbox.WithMemoryLimit("4GiB"))
	u, other := newTenant(t, e, ""), newTenant(t, e, "-other")
	m := &scraped{address: harness.Address(t)}
	manager := e.StartManager(t, "--metrics-bind-address", m.address, "--log-level", "info")
	audit, err := e.Audit()
	require.NoError(t, err)

	good, broken := e.Push(t, "series-good:v1", alone("")), e.Push(t, "series-broken:v1", alone(neverReady))
	for _, v := range []*tenant{u, other} {
		v.create(t, harness.Package(v.namespace, "broken", broken))
	}
	other.create(t, harness.Package(other.namespace, "good", good))
	began, first := time.Now(), limits.MetricPackages-3
	u.installMany(t, good, 0, first)
	m.await(t, first+1, map[string]int{"full": first + 3})
	t.Logf("%d packages of one ConfigMap are installed after %s", first+3, time.Since(began).Round(time.Second))
	before := m.all(t)
	for key, series := range before {
		if len(series) < 7 || len(series) > full {
			t.Errorf("%s has %d series: %q", key, len(series), series)
		}
	}
	m.tenTimesASecond(t, audit, manager)

	u.installMany(t, good, first, first+2)
	m.await(t, first+3, map[string]int{"full": 2, "reduced": first + 3})
	after := m.all(t)
	for key, series := range after {
		switch {
		case strings.HasPrefix(key, other.namespace+"/"):
			if want := before[key]; !slices.Equal(series, want) {
				t.Errorf("%s of another namespace has %q instead of %q", key, series, want)
			}
		case len(series) > reduced:
			t.Errorf("%s has %d series: %q", key, len(series), series)
		}
	}
	alerted := []string{"lockstep_package_blocked_since_seconds", "lockstep_package_summary Progressing", "package_operator_package_availability"}
	if got := after[u.namespace+"/broken"]; !slices.Equal(got, alerted) {
		t.Errorf("the tenant's package that is broken has %q", got)
	}
	if got := after[other.namespace+"/broken"]; !slices.Contains(got, alerted[0]) || !slices.Contains(got, alerted[1]) {
		t.Errorf("that of another namespace has %q", got)
	}
	m.tenTimesASecond(t, audit, manager)

	for i := range 2 {
		pkg := harness.Package(u.namespace, fmt.Sprintf("good-%d", first+i), "")
		require.NoError(t, u.Delete(t.Context(), pkg))
		e.WaitGone(t, harness.Patience, pkg)
	}
	m.await(t, first+1, map[string]int{"full": first + 3})
	if again := m.all(t); !maps.EqualFunc(again, before, slices.Equal) {
		t.Error("below the limit, packages have other series than before")
	}
}

const neverReady = `  availabilityProbes:
  - selector: {kind: {group: "", kind: ConfigMap}}
    probes:
    - cel: {rule: 'has(self.data)', message: not ready}
`

// alone returns a package of a ConfigMap that can be installed under several names; spec is as in [harness.Manifest].
func alone(spec string) harness.Files {
	return harness.Files{
		"manifest.yaml":      harness.Manifest("alone", []string{"p"}, spec),
		"object.yaml.gotmpl": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{.package.metadata.name}}\", annotations: {package-operator.run/phase: p}}\n",
	}
}

// installMany creates the packages good-FROM to good-(TO-1).
func (u *tenant) installMany(t *testing.T, image string, from, to int) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(16)
	for i := from; i < to; i++ {
		group.Go(func() error { return u.Create(ctx, harness.Package(u.namespace, fmt.Sprintf("good-%d", i), image)) })
	}
	require.NoError(t, group.Wait())
}

// scraped are the metrics of a manager.
type scraped struct{ address string }

// await waits until so many packages are available, and so many have series in each detail.
func (m *scraped) await(t *testing.T, available int, details map[string]int) {
	t.Helper()
	lines := []string{fmt.Sprintf("lockstep_packages{summary=%q} %d", corev1alpha1.ConditionAvailable, available)}
	for _, detail := range []string{"full", "reduced", "omitted"} {
		lines = append(lines, fmt.Sprintf("lockstep_metrics_packages{detail=%q} %d", detail, details[detail]))
	}
	harness.Eventually(t, 20*time.Minute, "the metrics of all packages", func(context.Context) error {
		text := harness.Metrics(t, m.address)
		for _, line := range lines {
			if !strings.Contains(text, line+"\n") {
				return fmt.Errorf("there is no %q in %q", line, aboutAll.FindAllString(text, -1))
			}
		}
		return nil
	})
}

var (
	aboutAll = regexp.MustCompile(`(?m)^lockstep_(metrics_)?packages\{.*$`)
	labelled = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// all returns what series packages and their revisions have, by NAMESPACE/NAME: names of metrics, with the summary where there is one.
func (m *scraped) all(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for line := range strings.Lines(harness.Metrics(t, m.address)) {
		name, rest, _ := strings.Cut(line, "{")
		labels := map[string]string{}
		for _, label := range labelled.FindAllStringSubmatch(rest, -1) {
			labels[label[1]] = label[2]
		}
		owner := labels["pko_name"]
		if instance := labels["pko_package_instance"]; instance != "" {
			owner = instance
		}
		if owner == "" {
			continue
		}
		key := labels["pko_namespace"] + "/" + owner
		found[key] = append(found[key], strings.TrimSpace(name+" "+labels["summary"]))
	}
	for _, series := range found {
		slices.Sort(series)
	}
	return found
}

// tenTimesASecond reads the metrics for a minute, as often as the machine allows, in which the manager requests nothing, and reports what
// they cost.
func (m *scraped) tenTimesASecond(t *testing.T, audit *sandbox.Audit, manager *harness.Manager) {
	t.Helper()
	byManager := []sandbox.Filter{sandbox.ByUser(harness.ManagerUser()), sandbox.Not(sandbox.ByVerb("watch")), func(e sandbox.Entry) bool { return e.Object.Resource != "leases" }}
	mark, err := audit.Mark(t.Context())
	require.NoError(t, err)
	_, err = audit.Settled(t.Context(), mark, 3*time.Second, byManager...)
	require.NoError(t, err)
	mark, err = audit.Mark(t.Context())
	require.NoError(t, err)
	var took []time.Duration
	var text string
	ticks, minute := time.NewTicker(100*time.Millisecond), time.NewTimer(time.Minute)
	defer ticks.Stop()
	defer minute.Stop()
	for ended := false; !ended; {
		select {
		case <-ticks.C:
			begun := time.Now()
			text = harness.Metrics(t, m.address)
			took = append(took, time.Since(begun))
		case <-minute.C:
			ended = true
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
	entries, err := audit.Since(t.Context(), mark, byManager...)
	require.NoError(t, err)
	if len(entries) > 0 {
		t.Errorf("while the metrics were read, the manager sent%s", harness.Lines(entries))
	}
	slices.Sort(took)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", manager.PID()))
	require.NoError(t, err)
	t.Logf("%d scrapes of %d series in %.2f MiB, each %s (median), %s at most; %d requests of the manager, whose memory is %s; %d MiB at most", len(took),
		strings.Count("\n"+text, "\n")-strings.Count("\n"+text, "\n#")-1, float64(len(text))/(1<<20), took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond), len(entries),
		regexp.MustCompile(`RssAnon:\s+\d+ kB`).Find(status), manager.Peak(t)>>20)
}
