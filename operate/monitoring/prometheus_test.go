package monitoring

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// namespace is the namespace of the engine.
const namespace = "package-operator-system"

// programs builds programs of the repository, and Prometheus from its own module, into a persistent
// folder.
func programs(t *testing.T, args ...string) string {
	t.Helper()
	folder, err := filepath.Abs("../../.task/operate")
	if err != nil {
		t.Fatal(err)
	}
	all := append([]string{"build", "-C", "../..", "-ldflags=-s -w", "-o", folder + string(filepath.Separator)}, args...)
	if out, err := exec.CommandContext(t.Context(), "go", all...).CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(all, " "), err, out)
	}
	return folder
}

// ofPrometheus builds programs of Prometheus, prometheus or promtool, without the discovery of
// targets in clouds.
func ofPrometheus(t *testing.T, program string) string {
	t.Helper()
	folder := programs(t, "-modfile=tools/prometheus/go.mod", "-tags=remove_all_sd", "github.com/prometheus/prometheus/cmd/"+program)
	return filepath.Join(folder, program)
}

// process is a program that runs along with the test.
type process struct {
	cmd *exec.Cmd
	log bytes.Buffer
	end chan struct{}
}

func start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(name, args...), end: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}

	go func() {
		_ = p.cmd.Wait()
		close(p.end)
	}()

	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			text := p.log.String()
			t.Logf("the log of %s ends with:\n%s", filepath.Base(name), text[max(0, len(text)-1000):])
		}
	})

	return p
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.end:
	case <-time.After(30 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.end
	}
}

// free returns a free address. Its port is below the ephemeral ports, which the kernel uses for the
// near end of connections, and above sandboxes' ports.
func free(t *testing.T) string {
	t.Helper()
	var failed error
	for range 100 {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 30000+rand.IntN(2700)))
		if err == nil {
			defer listener.Close()
			return listener.Addr().String()
		}
		failed = err
	}
	t.Fatal(failed)
	return ""
}

// eventually repeats a check until it succeeds, because other programs do not report their events.
// Only the time limit of the whole test limits it.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline, limited := t.Deadline()
	for pause := time.NewTicker(200 * time.Millisecond); ; <-pause.C {
		err := check()
		if err == nil {
			pause.Stop()
			return
		}
		if limited && time.Until(deadline) < time.Minute {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// server is a Prometheus that scrapes managers.
type server struct {
	t   *testing.T
	url string
}

// get reads an answer of the API.
func (p *server) get(path string, query url.Values, data any) error {
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.url+"/api/v1/"+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}

	defer response.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}

	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %w", response.Status, err)
	}
	if answer.Status != "success" {
		return errors.New(answer.Error)
	}

	return nil
}

// selectors returns the series that a query selects, as selectors, using Prometheus' parser.
func (p *server) selectors(query string) ([]string, error) {
	var tree any
	if err := p.get("parse_query", url.Values{"query": {query}}, &tree); err != nil {
		return nil, err
	}

	var found []string
	var walk func(any)
	walk = func(node any) {
		switch node := node.(type) {
		case []any:
			for _, child := range node {
				walk(child)
			}
		case map[string]any:
			if matchers, is := node["matchers"].([]any); is && node["type"] != nil {
				var terms []string
				for _, m := range matchers {
					m := m.(map[string]any)
					terms = append(terms, fmt.Sprintf("%s%s%q", m["name"], m["type"], m["value"]))
				}
				found = append(found, "{"+strings.Join(terms, ",")+"}")
			}
			for _, child := range node {
				walk(child)
			}
		}
	}

	walk(tree)
	slices.Sort(found)
	return slices.Compact(found), nil
}

// check returns the problem of a query: it does not parse, or selects series that no manager has
// had. Otherwise it returns the number of series.
func (p *server) check(query string) (series int, err error) {
	selectors, err := p.selectors(query)
	if err != nil {
		return 0, err
	}
	if len(selectors) == 0 {
		return 0, errors.New("it selects nothing")
	}

	for _, selector := range selectors {
		var found []map[string]string
		if err := p.get("series", url.Values{"match[]": {selector}}, &found); err != nil {
			return 0, err
		}
		if len(found) == 0 {
			return 0, fmt.Errorf("no manager has %s", selector)
		}
		series += len(found)
	}

	return series, nil
}

// over returns how many series a query had at any time since this long ago.
func (p *server) over(query string, since time.Duration) (series int, err error) {
	var data struct{ Result []any }
	now := time.Now()
	err = p.get("query_range", url.Values{
		"query": {query}, "start": {fmt.Sprint(now.Add(-since).Unix())}, "end": {fmt.Sprint(now.Unix())}, "step": {"1"},
	}, &data)
	return len(data.Result), err
}

// firing returns the names of the alerts that fire.
func (p *server) firing() (map[string]bool, error) {
	var data struct {
		Alerts []struct {
			Labels map[string]string
			State  string
		}
	}

	err := p.get("alerts", nil, &data)
	names := map[string]bool{}
	for _, alert := range data.Alerts {
		if alert.State == "firing" {
			names[alert.Labels["alertname"]] = true
		}
	}

	return names, err
}

// await waits until alerts fire, or no longer do.
func (p *server) await(fire bool, alerts ...string) {
	p.t.Helper()
	began := time.Now()
	for _, alert := range alerts {
		eventually(p.t, fmt.Sprintf("%s to fire: %t", alert, fire), func() error {
			firing, err := p.firing()
			if err == nil && firing[alert] != fire {
				err = fmt.Errorf("there fire %v", firing)
			}
			return err
		})
		state := "fires"
		if !fire {
			state = "is resolved"
		}
		p.t.Logf("%s %s after %s", alert, state, time.Since(began).Round(100*time.Millisecond))
	}
}

// rule is an alert.
type rule struct{ Alert, Expr, For string }

// impatient returns the rules of config with times in seconds.
func impatient(t *testing.T) (content string, rules []rule) {
	t.Helper()
	text, err := os.ReadFile("../../config/monitoring/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}

	var file struct {
		Groups []struct{ Rules []rule }
	}

	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}

	for _, group := range file.Groups {
		rules = append(rules, group.Rules...)
	}

	content = regexp.MustCompile(`(?m)for: \w+$`).ReplaceAllString(string(text), "for: 2s")
	return strings.NewReplacer("[15m]", "[8s]", "[5m]", "[8s]").Replace(content), rules
}

// scrape starts a Prometheus that scrapes a manager in the same way as the ServiceMonitor of the
// chart.
func scrape(t *testing.T, manager, token, rules string) *server {
	t.Helper()
	folder := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}

	config := write("prometheus.yaml", fmt.Sprintf(`
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 500ms}
rule_files: [%s]
scrape_configs:
- job_name: lockstep-manager-metrics
  scheme: https
  tls_config: {insecure_skip_verify: true}
  authorization: {credentials_file: %s}
  static_configs: [{targets: [%q], labels: {namespace: %s, pod: lockstep-manager-0}}]
`, write("rules.yaml", rules), write("token", token), manager, namespace))

	address := free(t)
	start(t, ofPrometheus(t, "prometheus"), "--config.file="+config, "--storage.tsdb.path="+filepath.Join(folder, "data"), "--web.listen-address="+address, "--log.level=warn")
	p := &server{t: t, url: "http://" + address}
	eventually(t, "Prometheus to answer", func() error { return p.get("status/buildinfo", nil, new(any)) })
	return p
}

// control is a sandbox.
type control struct {
	t                       *testing.T
	sandbox, data, registry string
}

// newControl starts a sandbox. LOCKSTEP_SANDBOX names its program.
func newControl(t *testing.T) *control {
	t.Helper()
	c := &control{t: t, sandbox: os.Getenv("LOCKSTEP_SANDBOX"), data: t.TempDir()}
	if c.sandbox == "" {
		t.Fatal("LOCKSTEP_SANDBOX names no sandbox: run ./task test:operate")
	}

	var up struct{ Kubeconfig, Registry string }
	output := c.run("", c.sandbox, "up", "--name", "monitoring", "--data", c.data, "--pod-ready-after", "0s", "-o", "json")
	t.Cleanup(func() {
		if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), c.sandbox, "down", "--name", "monitoring", "--data", c.data).CombinedOutput(); err != nil {
			t.Errorf("the sandbox does not end: %v\n%s", err, out)
		}
	})

	if err := json.Unmarshal([]byte(output), &up); err != nil {
		t.Fatalf("%v in %s", err, output)
	}

	c.registry = up.Registry
	t.Setenv("KUBECONFIG", up.Kubeconfig)
	return c
}

func (c *control) run(stdin, name string, args ...string) string {
	c.t.Helper()
	var stderr bytes.Buffer
	command := exec.CommandContext(c.t.Context(), name, args...)
	command.Stdin, command.Stderr = strings.NewReader(stdin), &stderr
	out, err := command.Output()
	if err != nil {
		c.t.Fatalf("%s %s: %v\n%s%s", filepath.Base(name), strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}

// kubectl runs kubectl, which is the sandbox's program under another name.
func (c *control) kubectl(stdin string, args ...string) string {
	c.t.Helper()
	return c.run(stdin, filepath.Join(filepath.Dir(c.sandbox), "kubectl"), args...)
}

// kubeconfig writes a kubeconfig with a token of a service account in the engine's namespace.
func (c *control) kubeconfig(account string) string {
	c.t.Helper()
	token := strings.TrimSpace(c.kubectl("", "create", "token", account, "--namespace", namespace, "--duration=24h"))
	var view struct {
		Clusters []struct{ Cluster map[string]any }
	}

	if err := json.Unmarshal([]byte(c.kubectl("", "config", "view", "--raw", "--minify", "--flatten", "-o", "json")), &view); err != nil {
		c.t.Fatal(err)
	}

	content, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "a",
		"clusters": []any{map[string]any{"name": "a", "cluster": view.Clusters[0].Cluster}},
		"users":    []any{map[string]any{"name": "a", "user": map[string]any{"token": token}}},
		"contexts": []any{map[string]any{"name": "a", "context": map[string]any{"cluster": "a", "user": "a"}}},
	})
	if err != nil {
		c.t.Fatal(err)
	}

	path := filepath.Join(c.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		c.t.Fatal(err)
	}

	return path
}

// engine is a manager that runs along with the sandbox.
type engine struct {
	*control
	folder, config, metrics string
	manager                 *process
}

func (e *engine) start() {
	e.t.Helper()
	probes := free(e.t)
	e.manager = start(e.t, filepath.Join(e.folder, "lockstep-manager"), "--kubeconfig", e.config, "--namespace", namespace,
		"--metrics-bind-address", e.metrics, "--health-probe-bind-address", probes, "--insecure-registry", e.registry, "--cache-dir", e.t.TempDir())

	eventually(e.t, "the manager to be ready", func() error {
		response, err := http.Get("http://" + probes + "/readyz")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		return nil
	})
}

// push builds a package of a ConfigMap, which is available if its value is good, and returns its
// image.
func (e *engine) push(name, value string) string {
	e.t.Helper()
	folder := e.t.TempDir()
	for file, content := range map[string]string{
		"manifest.yaml": `{apiVersion: manifests.package-operator.run/v1alpha1, kind: PackageManifest, metadata: {name: ` + name + `}, spec: {scopes: [Namespaced],
			phases: [{name: app}], availabilityProbes: [{selector: {kind: {group: "", kind: ConfigMap}}, probes: [{cel: {rule: 'self.data.value == "good"', message: it is not good}}]}]}}`,
		"object.yaml": `{apiVersion: v1, kind: ConfigMap, metadata: {name: ` + name + `, annotations: {package-operator.run/phase: app}}, data: {value: ` + value + `}}`,
	} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600); err != nil {
			e.t.Fatal(err)
		}
	}

	image := e.registry + "/" + name + ":" + value
	e.run("", filepath.Join(e.folder, "kubectl-package"), "build", folder, "--tag", image, "--push", "--insecure-registry", e.registry)
	return image
}

func (e *engine) apply(object string) { e.kubectl(object, "apply", "-f", "-") }

func (e *engine) install(name, spec string) {
	e.apply(`{apiVersion: package-operator.run/v1alpha1, kind: Package, metadata: {namespace: default, name: ` + name + `}, spec: {` + spec + `}}`)
}

// fight keeps changing a ConfigMap back until the context ends.
func (e *engine) fight(ctx context.Context, name string) {
	for ctx.Err() == nil {
		_ = exec.CommandContext(ctx, filepath.Join(filepath.Dir(e.sandbox), "kubectl"), "patch", "configmap", name, "--namespace", "default",
			"--type=merge", "--field-manager=rival", "-p", `{"data": {"value": "mine"}}`).Run()
	}
}

var described = regexp.MustCompile(`(?s)\n +description: .*?(\n +runbook: )`)

// Each alert has the right state just before and just after its time. The descriptions, which
// docs/alerts.md is generated from, are texts without a variable, and are not compared.
func TestBoundaries(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	rules, err := os.ReadFile("../../config/monitoring/rules.yaml")
	tests, err2 := os.ReadFile("testdata/alerts.yaml")
	for _, description := range described.FindAll(rules, -1) {
		if bytes.Contains(description, []byte("{{")) {
			t.Errorf("a variable: %s", description)
		}
	}

	tests = bytes.Replace(tests, []byte("../../../config/monitoring/rules.yaml"), []byte("rules.yaml"), 1)
	err = errors.Join(err, err2, os.WriteFile(filepath.Join(folder, "rules.yaml"), described.ReplaceAll(rules, []byte("$1")), 0o600),
		os.WriteFile(filepath.Join(folder, "alerts.yaml"), tests, 0o600))
	if err != nil {
		t.Fatal(err)
	}

	promtool := exec.CommandContext(t.Context(), ofPrometheus(t, "promtool"), "test", "rules", filepath.Join(folder, "alerts.yaml"))
	if out, err := promtool.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// A Prometheus that scrapes a manager with the documented role and token has data for every query
// of the rules. Each alert fires on its failure, and is resolved after the repair.
func TestPrometheus(t *testing.T) {
	c := newControl(t)
	c.kubectl("", "apply", "--server-side", "-k", "../../config")
	c.kubectl("", "create", "serviceaccount", "prometheus", "--namespace", namespace)
	c.kubectl("", "create", "clusterrolebinding", "lockstep-metrics", "--clusterrole=lockstep-metrics-reader", "--serviceaccount="+namespace+":prometheus")
	e := &engine{control: c, metrics: free(t), folder: programs(t, "./cmd/lockstep-manager", "./cmd/kubectl-package")}
	e.config = c.kubeconfig("lockstep-manager")
	good, never, stuck, going, contended := e.push("good", "good"), e.push("never", "bad"), e.push("stuck", "good"), e.push("going", "good"), e.push("contended", "good")
	content, rules := impatient(t)
	e.start()
	began := time.Now()
	p := scrape(t, e.metrics, strings.TrimSpace(c.kubectl("", "create", "token", "prometheus", "--namespace", namespace, "--duration=24h")), content)

	// The failures.
	e.install("going", "image: "+going)
	e.install("contended", "image: "+contended)
	for _, name := range []string{"going", "contended"} {
		c.kubectl("", "wait", "--for=condition=Ready", "packages.package-operator.run/"+name, "--timeout=10m")
	}
	c.kubectl("", "patch", "configmap", "going", "--type=merge", "-p", `{"metadata": {"finalizers": ["example.com/held"]}}`)
	c.kubectl("", "delete", "packages.package-operator.run/going", "--wait=false")
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { e.fight(ctx, "contended"); close(ended) }()
	defer func() { end(); <-ended }()
	e.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: source}, data: {value: one}}`)
	e.apply(`{apiVersion: package-operator.run/v1alpha1, kind: ObjectTemplate, metadata: {namespace: default, name: copy}, spec: {
		sources: [{apiVersion: v1, kind: ConfigMap, name: source, items: [{key: .data.value, destination: .value}]}],
		template: "{apiVersion: v1, kind: ConfigMap, metadata: {name: copy, namespace: default}, data: {value: '{{ .config.value }}'}}"}}`)
	e.install("never", "image: "+never)
	e.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: stuck}, data: {value: other}}`)
	e.install("stuck", "image: "+stuck)
	e.install("bad", "image: "+e.registry+"/none:v1")
	unreachable := `{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: a, cluster: {server: "https://198.51.100.1:6443"}}], users: [{name: a, user: {token: x}}], contexts: [{name: a, context: {cluster: a, user: a}}]}`
	e.apply(`{apiVersion: v1, kind: Secret, metadata: {namespace: default, name: far}, data: {value: ` + base64.StdEncoding.EncodeToString([]byte(unreachable)) + `}}`)
	e.install("far", "image: "+good+", targetRef: {kubeconfigSecretRef: {name: far}}")
	e.apply(`{apiVersion: package-operator.run/v1alpha1, kind: PackageRepository, metadata: {namespace: default, name: shops}, spec: {source: {image: {ref: "` + e.registry + `/none:v1"}}}}`)
	packages := []string{
		"LockstepPackageUnavailable", "LockstepPackageWaiting", "LockstepPackageStalled", "LockstepPackageNotLoaded", "LockstepDeletionHangs",
		"LockstepFight", "LockstepTargetAway", "LockstepRepositoryNotReady",
	}
	p.await(true, packages...)

	// The repairs.
	end()
	<-ended
	e.install("never", "image: "+good)
	c.kubectl("", "delete", "configmap", "stuck")
	e.install("bad", "image: "+good)
	c.kubectl("", "delete", "packages.package-operator.run", "never", "bad", "far", "--wait=false")
	c.kubectl("", "patch", "configmap", "going", "--type=merge", "-p", `{"metadata": {"finalizers": null}}`)
	c.kubectl("", "delete", "packagerepositories.package-operator.run", "shops")
	p.await(false, packages...)

	e.manager.stop()
	p.await(true, "LockstepNoLeader")
	policy := []string{"validatingadmissionpolicy/lockstep-foreground-deletion", "validatingadmissionpolicybinding/lockstep-foreground-deletion"}
	c.kubectl("", append([]string{"delete"}, policy...)...)
	e.start()
	p.await(true, "LockstepTeardownUnprotected")
	p.await(false, "LockstepNoLeader")
	c.kubectl("", "apply", "--server-side", "-k", "../../config")
	e.manager.stop()
	e.start()
	p.await(false, "LockstepTeardownUnprotected", "LockstepNoLeader")

	fired := append(packages, "LockstepNoLeader", "LockstepTeardownUnprotected")
	for _, r := range rules {
		if !slices.Contains(fired, r.Alert) {
			t.Errorf("%s was not made to fire", r.Alert)
		}
		series, err := p.check(r.Expr)
		if err != nil {
			t.Errorf("%s: %v", r.Alert, err)
		}
		t.Logf("%s: %d series", r.Alert, series)
	}
	for _, metric := range documented(t) {
		if _, err := p.check(metric); err != nil {
			t.Errorf("metrics.md: %v", err)
		}
	}
	since := time.Since(began)
	for _, query := range queries() {
		query = strings.NewReplacer("$__rate_interval", "10s", "$namespace", ".*").Replace(query)
		if _, err := p.check(query); err != nil {
			t.Errorf("the dashboard has %s: %v", query, err)
			continue
		}
		series, err := p.over(query, since)
		if err != nil || series == 0 {
			t.Errorf("the dashboard has %s, which is empty: %v", query, err)
		}
		t.Logf("%d series: %s", series, query)
	}
	for _, broken := range []string{"lockstep_package_summaries == 1", `sum(lockstep_packages{state="Invalid"})`, `lockstep_package_summary{summary="Broken"}`, "lockstep_leader ==="} {
		if _, err := p.check(broken); err == nil {
			t.Errorf("that %s is wrong is not noticed", broken)
		}
	}
}

// documented are the metrics on their page.
func documented(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}

	var names []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) ").FindAllStringSubmatch(string(page), -1) {
		name := row[1]
		if row[2] == "histogram" {
			name += "_bucket"
		}
		names = append(names, name)
	}

	if len(names) < 20 {
		t.Fatalf("the page of metrics has %d", len(names))
	}

	return names
}
