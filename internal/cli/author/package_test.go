package author_test

import (
	"archive/tar"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/golden"
	"lockstep.run/lockstep/test/require"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	good := clitest.Invoke(t, "", "validate", clitest.Fixed(t, clitest.Folder(t, clitest.GoodPackage)))
	if diff := cmp.Diff(clitest.Result{Code: 0, Out: "Package validated successfully!\n", Err: ""}, good, cmp.AllowUnexported(clitest.Result{})); diff != "" {
		t.Error(diff)
	}
	dir := clitest.Folder(t, clitest.BadPackage)
	want := clitest.Result{Code: 1, Out: "", Err: `error: cm.yaml:11 (document 2): Phase name not found in manifest: v1 ConfigMap evil: metadata.annotations[package-operator.run/phase]: phase "de\x1b[31mploy"
    The manifest has: deploy.
error: manifest.yaml:7 (document 1): PackageManifest invalid: spec.phasse: unknown field
    Did you mean "phases"?
` + "Error: 2 problems in " + dir + "\n"}
	if diff := cmp.Diff(want, clitest.Invoke(t, "", "validate", dir), cmp.AllowUnexported(clitest.Result{})); diff != "" {
		t.Error(diff)
	}
}

func TestValidateJSON(t *testing.T) {
	t.Parallel()
	got := clitest.Invoke(t, "", "validate", clitest.Folder(t, clitest.BadPackage), "-o", "json")
	var f content.Findings
	require.NoError(t, json.Unmarshal([]byte(got.Out), &f))
	if f.Valid || len(f.Problems) != 2 || f.Problems[1].Field != "spec.phasse" || f.Problems[1].Line != 7 || got.Code != 1 {
		t.Errorf("got %+v, exit code %d", f, got.Code)
	}
}

func TestInspectTree(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, clitest.GoodPackage)
	const namespaced = `web
Package shop/shop-web
└── Phase settings
│   ├── /v1, Kind=ConfigMap shop/color-blue
└── Phase deploy
    └── apps/v1, Kind=Deployment shop/web
    └── /v1, Kind=Service shop/web
`
	inOther := strings.NewReplacer("shop/", "other/").Replace(namespaced)
	cluster := strings.NewReplacer("Package shop/", "ClusterPackage /", "shop/", "web/").Replace(namespaced)
	configured := strings.NewReplacer("color-blue", "color-green").Replace(namespaced)
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte("color: green\n"), 0o600))
	for name, tc := range map[string]struct {
		stdin string
		args  []string
		want  string
	}{
		"first test case":   {want: namespaced},
		"another namespace": {args: []string{"-n", "other"}, want: inOther},
		"cluster":           {args: []string{"--cluster"}, want: cluster},
		"config":            {args: []string{"--config", file}, want: configured},
		"config-path":       {args: []string{"--config-path", file}, want: configured},
		"standard input":    {args: []string{"--config", "-"}, stdin: `{"color": "green"}`, want: configured},
		"test case":         {args: []string{"--config-testcase", "cluster"}, want: strings.NewReplacer("/shop-web", "/web", "blue", "red").Replace(cluster)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := clitest.Invoke(t, tc.stdin, append([]string{"inspect", "--tree", dir}, tc.args...)...)
			if diff := cmp.Diff(clitest.Result{Code: 0, Out: tc.want, Err: ""}, got, cmp.AllowUnexported(clitest.Result{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A package with components is shown with all of them, in the environment of their test cases. A
// flag about one part shows only that part.
func TestInspectTreeComponents(t *testing.T) {
	t.Parallel()
	const manifest = "apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifest\nmetadata: {name: %s}\nspec:\n  scopes: [Cluster]\n  phases: [{name: deploy}]\n"
	const object = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: %s\n  annotations: {package-operator.run/phase: deploy}\n"
	dir := clitest.Folder(t, "\n-- manifest.yaml\n"+fmt.Sprintf(manifest, "whole")+"  components: {}\n-- ns.yaml\n"+fmt.Sprintf(object, "root")+
		"-- components/back/manifest.yaml\n"+fmt.Sprintf(manifest, "x")+"test:\n  template:\n  - name: proxy\n    context:\n      package: {metadata: {name: part}}\n      environment: {proxy: {httpProxy: http-proxy}}\n"+
		"-- components/back/ns.yaml.gotmpl\n"+fmt.Sprintf(object, "{{ .environment.proxy.httpProxy }}")+
		"-- components/front/manifest.yaml\n"+fmt.Sprintf(manifest, "z")+"-- components/front/ns.yaml\n"+fmt.Sprintf(object, "front"))
	want := "whole\nClusterPackage /name\n└── Phase deploy\n    └── /v1, Kind=Namespace /root\n" +
		"\nComponent back\nClusterPackage /part\n└── Phase deploy\n    └── /v1, Kind=Namespace /http-proxy\n" +
		"\nComponent front\nClusterPackage /name\n└── Phase deploy\n    └── /v1, Kind=Namespace /front\n"
	if diff := cmp.Diff(clitest.Result{Code: 0, Out: want, Err: ""}, clitest.Invoke(t, "", "inspect", "--tree", dir), cmp.AllowUnexported(clitest.Result{})); diff != "" {
		t.Error(diff)
	}
	if got := clitest.Invoke(t, "", "inspect", "--tree", dir, "--component", "front"); got.Out != "front\nClusterPackage /name\n└── Phase deploy\n    └── /v1, Kind=Namespace /front\n" {
		t.Errorf("got %+v", got)
	}
}

func TestInspectTreeErrors(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, clitest.GoodPackage)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no folder":       {[]string{"inspect", "--tree", dir + "/nope"}, "there is no folder "},
		"no such path":    {[]string{"inspect", "--tree", "nope/"}, "there is no folder nope/"},
		"an empty folder": {[]string{"inspect", "--tree", t.TempDir()}, ": name the folder with the manifest.yaml"},
		"a file":          {[]string{"inspect", "--tree", dir + "/manifest.yaml"}, "is not a folder: name the folder with the manifest.yaml"},
		"no test case":    {[]string{"inspect", "--tree", dir, "--config-testcase", "blu"}, `the package has no test case "blu". Did you mean "blue"?`},
		"no config file":  {[]string{"inspect", "--tree", dir, "--config", dir + "/nope"}, "read the configuration: open "},
		"contradiction":   {[]string{"inspect", "--tree", dir, "--cluster", "-n", "a"}, "arguments invalid: --cluster and --namespace contradict each other"},
		"two configs":     {[]string{"inspect", "--tree", dir, "--config", "a", "--config-testcase", "b"}, "none of the others can be"},
		"unknown key":     {[]string{"inspect", "--tree", dir, "--config", "-"}, "1 problem in "},
		"invalid package": {[]string{"inspect", "--tree", clitest.Folder(t, clitest.BadPackage)}, "2 problems in "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := clitest.Invoke(t, "colour: green", tc.args...)
			if got.Code != 1 || !strings.Contains(got.Err, tc.want) || !strings.Contains(got.Err, "Error: ") || got.Out != "" {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

// The same files give the same digest, regardless of their modification times and modes.
func TestBuildIsDeterministic(t *testing.T) {
	t.Parallel()
	digest := func(change func(dir string) error) string {
		dir := clitest.Fixed(t, clitest.Folder(t, clitest.GoodPackage))
		require.NoError(t, change(dir))
		got := clitest.Invoke(t, "", "build", dir, "--output-format", "digest")
		if got.Code != 0 || got.Err != "" || !strings.HasPrefix(got.Out, "sha256:") {
			t.Fatalf("got %+v", got)
		}
		return got.Out
	}
	plain := digest(func(string) error { return nil })
	for name, change := range map[string]func(string) error{
		"older":       func(dir string) error { return os.Chtimes(dir+"/manifest.yaml", time.Unix(1, 0), time.Unix(1, 0)) },
		"other mode":  func(dir string) error { return os.Chmod(dir+"/manifest.yaml", 0o644) },
		"hidden file": func(dir string) error { return os.WriteFile(dir+"/.other", nil, 0o600) },
	} {
		require.Equal(t, plain, digest(change), name)
	}
	if got := digest(func(dir string) error { return os.WriteFile(dir+"/README.md", nil, 0o600) }); got == plain {
		t.Error("another file gives the same digest")
	}
}

func TestBuildOutput(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "package.tar")
	got := clitest.Invoke(t, "", "build", clitest.Folder(t, clitest.GoodPackage), "-t", "example.com/web:v1", "-t", "example.com/other:v2", "-o", path)
	if got.Code != 0 || !strings.HasPrefix(got.Out, "Package built successfully!\n  digest  sha256:") {
		t.Fatalf("got %+v", got)
	}
	for _, text := range []string{"example.com/web:v1", "example.com/other:v2"} {
		tag, err := name.NewTag(text)
		require.NoError(t, err)
		if _, err := tarball.ImageFromPath(path, &tag); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	if _, err := tar.NewReader(file).Next(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".kubectl-package-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestBuildErrors(t *testing.T) {
	t.Parallel()
	good, bad := clitest.Folder(t, clitest.GoodPackage), clitest.Folder(t, clitest.BadPackage)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no source":         {nil, "arguments invalid: SOURCE is missing. See: kubectl package build --help"},
		"no folder":         {[]string{"nope"}, "there is no folder nope"},
		"push without tag":  {[]string{good, "--push"}, "arguments invalid: output or push is requested but no tags are set: add --tag host/path:tag"},
		"file without tag":  {[]string{good, "-o", "x.tar"}, "arguments invalid: output or push is requested but no tags are set"},
		"invalid tag":       {[]string{good, "-t", "a b"}, `arguments invalid: invalid tag specified as parameter "a b"`},
		"invalid label":     {[]string{good, "-l", "key"}, `arguments invalid: invalid label "key"`},
		"invalid format":    {[]string{good, "--output-format", "xml"}, `arguments invalid: unknown --output-format "xml"`},
		"invalid registry":  {[]string{good, "--insecure-registry", "a/b"}, "arguments invalid: invalid --insecure-registry"},
		"invalid CA":        {[]string{good, "--registry-ca", "ca.pem"}, "arguments invalid: invalid --registry-ca: ca.pem: want HOST[:PORT]=FILE"},
		"invalid proxy":     {[]string{good, "--registry-proxy", "quay.io=ftp://user:geheim@proxy"}, "arguments invalid: invalid --registry-proxy: quay.io: want a proxy such as http://proxy.example:3128, by http, https, socks5, socks5h, or direct."},
		"unknown flag":      {[]string{good, "--bogus"}, "arguments invalid: unknown flag: --bogus"},
		"too many":          {[]string{good, "more"}, `arguments invalid: unexpected argument "more"`},
		"a package problem": {[]string{bad}, "2 problems in " + bad + ": nothing was built"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := clitest.Invoke(t, "", append([]string{"build"}, tc.args...)...)
			if got.Code != 1 || !strings.Contains(got.Err, "Error: "+tc.want) || got.Out != "" {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

func TestPushAndPull(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, clitest.GoodPackage)
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	plain, secure := httptest.NewServer(handler), httptest.NewUnstartedServer(handler)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	require.NoError(t, os.WriteFile(ca, block, 0o600))
	plainHost, secureHost := strings.TrimPrefix(plain.URL, "http://"), strings.TrimPrefix(secure.URL, "https://")
	for name, tc := range map[string]struct {
		ref   string
		flags []string
		err   string
	}{
		"plain HTTP":            {plainHost + "/web:v1", nil, ""},
		"plain HTTP with a CA":  {plainHost + "/web:v1", []string{"--registry-ca-file", ca}, "the registry does not speak TLS. If it is yours to trust, add --insecure-registry " + plainHost},
		"plain HTTP, named":     {plainHost + "/web:v1", []string{"--insecure-registry", plainHost}, ""},
		"unknown CA":            {secureHost + "/web:v2", []string{"--registry-ca-file", clitest.Authority(t)}, "push " + secureHost + "/web:v2: "},
		"unknown CA, here":      {secureHost + "/web:v2", nil, ""},
		"unknown CA, named":     {secureHost + "/web:v2", []string{"--insecure-registry", secureHost}, ""},
		"CA by file":            {secureHost + "/web:v3", []string{"--registry-ca-file", ca}, ""},
		"CA of the registry":    {secureHost + "/web:v5", []string{"--registry-ca", secureHost + "=" + ca, "--registry-proxy", secureHost + "=direct"}, ""},
		"CA of another":         {secureHost + "/web:v6", []string{"--registry-ca", plainHost + "=" + ca, "--registry-ca-file", clitest.Authority(t)}, "push " + secureHost + "/web:v6: "},
		"unknown CA of it":      {secureHost + "/web:v7", []string{"--registry-ca", secureHost + "=" + clitest.Authority(t), "--insecure"}, "certificate signed by unknown authority. Give its certificate authority: --registry-ca " + secureHost + "=FILE"},
		"no CA of the registry": {secureHost + "/web:v8", []string{"--registry-ca", secureHost + "=" + dir + "/manifest.yaml"}, "--registry-ca " + secureHost + ": " + dir + "/manifest.yaml has no certificate in PEM form"},
		"no proxy":              {secureHost + "/web:v9", []string{"--registry-proxy", secureHost + "=http://user:geheim99@127.0.0.1:1"}, "push " + secureHost + "/web:v9: Get \"https://" + secureHost + "/v2/\": proxyconnect tcp"},
		"a file without any CA": {secureHost + "/web:v4", []string{"--registry-ca-file", dir + "/manifest.yaml"}, "has no certificate in PEM form"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := clitest.Invoke(t, "", append([]string{"build", dir, "--push", "-t", tc.ref, "-l", "team=web"}, tc.flags...)...)
			if tc.err != "" {
				if got.Code != 1 || !strings.Contains(got.Err, tc.err) {
					t.Errorf("got %+v, want %q", got, tc.err)
				}
				return
			}
			if got.Code != 0 || !strings.HasSuffix(got.Out, "  pushed  "+tc.ref+"\n") {
				t.Fatalf("got %+v", got)
			}
			if got := clitest.Invoke(t, "", append([]string{"validate", tc.ref}, tc.flags...)...); got.Code != 0 {
				t.Errorf("the image is not valid: %+v", got)
			}
			checkLabel(t, strings.Replace(tc.ref, secureHost, plainHost, 1))
		})
	}
}

func checkLabel(t *testing.T, ref string) {
	t.Helper()
	parsed, err := name.ParseReference(ref, name.Insecure)
	require.NoError(t, err)
	image, err := remote.Image(parsed)
	require.NoError(t, err)
	config, err := image.ConfigFile()
	if err != nil || config.Config.Labels["team"] != "web" {
		t.Errorf("labels %v, %v", config, err)
	}
}

func TestValidateSchemas(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, strings.Replace(clitest.GoodPackage, "selector: {matchLabels: {app: web}}", "selektor: {matchLabels: {app: web}}\n  strategy: {type: Rolling}", 1))
	const want = `error: web.yaml.gotmpl (document 1): Object invalid: apps/v1 Deployment shop/web: spec.selektor: unknown field
    Did you mean "selector"?
error: web.yaml.gotmpl (document 1): Object invalid: apps/v1 Deployment web/web: spec.selektor: unknown field
    Did you mean "selector"?
warning: web.yaml.gotmpl (document 1): Object invalid: apps/v1 Deployment shop/web: spec.selector: required field is missing
    Correct the object.
warning: web.yaml.gotmpl (document 1): Object invalid: apps/v1 Deployment web/web: spec.selector: required field is missing
    Correct the object.
warning: web.yaml.gotmpl (document 1): Object invalid: apps/v1 Deployment shop/web: spec.strategy.type: expected one of "Recreate", "RollingUpdate"
    Correct the object.
warning: web.yaml.gotmpl (document 1): Object invalid: apps/v1 Deployment web/web: spec.strategy.type: expected one of "Recreate", "RollingUpdate"
    Correct the object.
`
	got := clitest.Invoke(t, "", "validate", dir)
	if !strings.HasPrefix(got.Err, want) || got.Code != 1 || got.Out != "" {
		t.Errorf("%s\n%+v", cmp.Diff(want, got.Err), got)
	}
	if got := clitest.Invoke(t, "", "build", dir, "--output-format", "digest"); got.Code != 1 || !strings.Contains(got.Err, "2 problems in ") {
		t.Errorf("got %+v", got)
	}
	for _, command := range []string{"validate", "build"} {
		if got := clitest.Invoke(t, "", command, clitest.Fixed(t, dir), "--ignore-schemas"); got.Code != 0 || got.Err != "" {
			t.Errorf("%s: %+v", command, got)
		}
	}
}

// Problems and warnings go to standard error.
func TestTextsOfPackageOperator(t *testing.T) {
	t.Parallel()
	noKind := strings.Replace(clitest.GoodPackage, "kind: ConfigMap", "kin: ConfigMap", 1)
	noLock := strings.Replace(clitest.GoodPackage, "  scopes:", "  images: [{name: web, image: registry.invalid/web:v1}]\n  scopes:", 1)
	for want, args := range map[string][]string{
		"Object 'Kind' is missing": {"validate", clitest.Folder(t, noKind)},
		"Missing image in manifest.lock.yaml, but using PackageManifest.spec.images": {"build", clitest.Folder(t, noLock)},
		"Error: validating package: getting package from remote reference: ":         {"validate", "--pull", "127.0.0.1:1/web:v1"},
		"resolving image digest": {"update", clitest.Folder(t, strings.Replace(noLock, "registry.invalid", "127.0.0.1:1", 1))},
	} {
		if got := clitest.Invoke(t, "", args...); got.Code != 1 || got.Out != "" || !strings.Contains(got.Err, want) {
			t.Errorf("%v: %+v, want %q", args[0], got, want)
		}
	}
}

func TestInspect(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, clitest.GoodPackage)
	got := clitest.Invoke(t, "", "inspect", dir)
	if got.Code != 0 || !strings.HasPrefix(got.Out, "web 1.2.0\n  Installs as  Package or ClusterPackage\n  Test cases   blue, cluster\n\nPhases\n  1  settings\n     ConfigMap shop/color-blue\n") {
		t.Errorf("got %+v", got)
	}
	for want, args := range map[string][]string{
		"color string red\n":         {"-o", "json", "|jq", `.config[] | "\(.key) \(.type) \(.default)"`},
		"lab\n":                      {"-n", "lab", "-o", "json", "|jq", ".phases[0].objects[0].namespace"},
		"web\n":                      {"--cluster", "-o", "json", "|jq", ".phases[0].objects[0].namespace"},
		"color-red\n":                {"--config-testcase", "cluster", "-o", "json", "|jq", ".phases[0].objects[0].name"},
		"condition Available=True\n": {"-o", "json", "|jq", ".phases[1].objects[0].probes[]"},
	} {
		if got := clitest.Invoke(t, "", append([]string{"inspect", dir}, args...)...); got.Code != 0 || got.Out != want {
			t.Errorf("%q: %+v, want %q", args, got, want)
		}
	}
	for want, args := range map[string][]string{
		"2 problems in ": {clitest.Folder(t, clitest.BadPackage)},
		"arguments invalid: --cluster and --namespace contradict each other": {dir, "--cluster", "-n", "x"},
		`unknown output format "xml"`:                                        {dir, "-o", "xml"},
		"there is no folder ":                                                {dir + "/nope"},
		"--tree and --values only print text":                                {dir, "--tree", "-o", "json"},
	} {
		if got := clitest.Invoke(t, "", append([]string{"inspect"}, args...)...); got.Code != 1 || got.Out != "" || !strings.Contains(got.Err, want) {
			t.Errorf("%q: %+v, want %q", args, got, want)
		}
	}
}

func TestInspectValues(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, clitest.GoodPackage)
	if got := clitest.Invoke(t, "", "inspect", dir, "--values"); got != (clitest.Result{Code: 0, Out: "# string\ncolor: red\n", Err: ""}) {
		t.Errorf("got %+v", got)
	}
	if got := clitest.Invoke(t, "", "inspect", dir, "--values", "--component", "x"); got.Code != 1 || !strings.Contains(got.Err, " has no component x") {
		t.Errorf("got %+v", got)
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	good, bad := clitest.Fixed(t, clitest.Folder(t, clitest.GoodPackage)), clitest.Folder(t, clitest.BadPackage)
	for command, args := range map[string][]string{
		"validate": {bad}, "lint": {good}, "render": {good}, "inspect": {good}, "test": {clitest.Folder(t, clitest.GoodPackage), "--ignore-schemas"},
	} {
		golden.JSON(t, command, clitest.Invoke(t, "", append([]string{command, "-o", "json"}, args...)...).Out)
	}
}

func TestLint(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, strings.Replace(clitest.GoodPackage, "image: web}", "image: web:1}", 1))
	bad := clitest.Folder(t, clitest.BadPackage)
	const want = `warning: manifest.yaml: probe-misses-failed-rollout: spec.availabilityProbes[0]: Deployment web: true before pods of a new template are ready, with availableReplicas 1, readyReplicas 1, replicas 1
    Probe .status.updatedReplicas, .status.replicas and .status.availableReplicas, each equal to .spec.replicas, as the recipes of docs/packages/probes.md do.
warning: web.yaml.gotmpl (document 1): unpinned-image: apps/v1 Deployment shop/web: spec.template.spec.containers[name="web"].image: web:1
    List it under spec.images of the manifest, run ` + "`kubectl package update`" + `, and write {{ .images.NAME }} in a template.
info: web.yaml.gotmpl (document 1): ready-at-once: apps/v1 Deployment shop/web: spec.template.spec.containers: no container has a readinessProbe or a startupProbe, and minReadySeconds is 0
    Add a readinessProbe, or set minReadySeconds.
2 warnings, 1 info
`
	if diff := cmp.Diff(clitest.Result{Code: 0, Out: want, Err: ""}, clitest.Invoke(t, "", "lint", dir, "--disable", "foreign-namespace"), cmp.AllowUnexported(clitest.Result{})); diff != "" {
		t.Error(diff)
	}
	for _, test := range []struct {
		reason string
		args   []string
		code   int
		out    string
		err    string
	}{
		{"nothing found", []string{dir, "--disable", "unpinned-image,probe-misses-failed-rollout,ready-at-once", "--disable", "foreign-namespace"}, 0, "nothing found\n", ""},
		{"stricter", []string{dir, "--fail-on", "info", "-o", "json", "|jq", ".counts.info"}, 1, "1\n", "Error: 3 warnings, 1 info in " + dir + "\n"},
		{"an error", []string{clitest.Folder(t, clitest.GoodPackage), "-o", "json", "|jq", ".findings[0].rule"}, 1, "latest-image\n", "Error: 1 error, "},
		{"an error that is let pass", []string{clitest.Folder(t, clitest.GoodPackage), "--fail-on", "never", "-o", "json", "|jq", ".findings[0].level"}, 0, "error\n", ""},
		{"an upgrade", []string{dir, "--from", clitest.Folder(t, strings.ReplaceAll(clitest.GoodPackage, "app: web", "app: web2")), "-o", "json", "|jq", `.findings[] | select(.rule == "immutable-field").details`}, 1,
			"differs from the older package in spec.selector, which cannot change\n", "Error: 1 error, "},
		{"an unknown rule", []string{dir, "--disable", "keep-dat"}, 1, "", `Error: the rule "keep-dat" does not exist. Did you mean "keep-data"?`},
		{"an unknown level", []string{dir, "--fail-on", "bad"}, 1, "", `Error: arguments invalid: unknown --fail-on "bad"`},
		{"no package", nil, 1, "", "Error: arguments invalid: SOURCE|IMAGE is missing"},
		{"an invalid package", []string{clitest.Folder(t, clitest.BadPackage)}, 1, "", "Error: 2 problems in "},
		{"an invalid older package", []string{dir, "--from", bad}, 1, "", "Error: the older package is invalid: "},
	} {
		got := clitest.Invoke(t, "", append([]string{"lint"}, test.args...)...)
		if got.Code != test.code || got.Out != test.out || !strings.Contains(got.Err, test.err) || test.err == "" && got.Err != "" {
			t.Errorf("%s: got %+v", test.reason, got)
		}
	}
}
