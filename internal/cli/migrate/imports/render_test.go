package imports_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"lockstep.run/lockstep/test/clitest"
)

// standIn puts a program on the PATH that records its arguments, the names of the files beside it and its input, and prints a text.
func standIn(t *testing.T, tool, prints string) (record func() string) {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\nset -eu\n{ printf 'argument %s\\n' \"$@\"; find . -type f | sort | sed 's/^/file /'; case \" $* \" in *' - '*) sed 's/^/input /';; esac; } >>" +
		filepath.Join(dir, "record") + "\ncat <<'EOF'\n" + prints + "EOF\n"
	if err := os.WriteFile(filepath.Join(dir, tool), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func() string {
		data, err := os.ReadFile(filepath.Join(dir, "record"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
}

// pushFiles pushes an image of files.
func pushFiles(t *testing.T, ref string, files map[string]string) {
	t.Helper()
	content := map[string][]byte{}
	for p, text := range files {
		content[p] = []byte(text)
	}
	layer, err := crane.Layer(content)
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(ref, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, image, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
}

const tillObjects = `apiVersion: apps/v1
kind: Deployment
metadata: {name: till}
spec:
  selector: {matchLabels: {app: till}}
  template:
    metadata: {labels: {app: till}}
    spec: {containers: [{name: till, image: "team/till:1.0"}]}
`

func carvelWith(fetch, template string) string {
	return "apiVersion: data.packaging.carvel.dev/v1alpha1\nkind: Package\nmetadata: {name: till.tools.example.com.1.0.0}\nspec:\n  refName: till.tools.example.com\n  version: 1.0.0\n" +
		"  template: {spec: {fetch: [" + fetch + "], template: [" + template + "], deploy: [{kapp: {rawOptions: [a]}}]}}\n"
}

// A bundle with ytt and kbld, as nearly all real packages are, becomes a package of this engine.
func TestImportRendersByTheUsersTools(t *testing.T) {
	locked := "index.docker.io/team/till@sha256:" + strings.Repeat("1", 64)
	host := clitest.ServeRegistry(t)
	pushFiles(t, host+"/till:v1", map[string]string{
		"config/till.yml": "#@ x\n", "values.yml": "#@data/values\n", ".imgpkg/bundle.yml": "a: b\n",
		".imgpkg/images.yml": "apiVersion: imgpkg.carvel.dev/v1alpha1\nkind: ImagesLock\nimages:\n- annotations: {kbld.carvel.dev/id: 'team/till:1.0'}\n  image: " + locked + "\n",
	})
	record := standIn(t, "ytt", tillObjects)
	values := clitest.ValuesFile(t, "size: 3\n")
	out := filepath.Join(t.TempDir(), "till")
	text := carvelWith("{imgpkgBundle: {image: "+host+"/till:v1}}", "{ytt: {paths: [config/, values.yml], ignoreUnknownComments: true}}, {ytt: {paths: ['-']}}, {kbld: {paths: ['-', .imgpkg/images.yml]}}")
	got := clitest.Invoke(t, text, "import", "carvel", "-", "--render", out, "--values", values)
	if got.Code != 0 || !strings.Contains(got.Err, "note: deploy[0].kapp.rawOptions has no effect") {
		t.Fatalf("%+v", got)
	}
	files := "file ./.imgpkg/bundle.yml\nfile ./.imgpkg/images.yml\nfile ./config/till.yml\nfile ./values.yml\n"
	want := "argument --file\nargument ./config\nargument --file\nargument ./values.yml\nargument --ignore-unknown-comments\nargument --data-values-file\nargument " + values + "\n" + files +
		"argument --file\nargument -\n" + files + "input " + strings.ReplaceAll(strings.TrimSuffix(tillObjects, "\n"), "\n", "\ninput ") + "\n"
	if got := record(); got != want {
		t.Errorf("ytt was run with\n%s, want\n%s", got, want)
	}
	manifest, err := os.ReadFile(filepath.Join(out, "manifest.yaml"))
	if err != nil || !strings.Contains(string(manifest), "packageName: till.tools.example.com\n") || !strings.Contains(string(manifest), "version: 1.0.0\n") {
		t.Errorf("%v\n%s", err, manifest)
	}
	if got := clitest.Invoke(t, "", "render", out); got.Code != 0 || !strings.Contains(got.Out, "image: "+locked+"\n") {
		t.Errorf("%+v", got)
	}
	if got := clitest.Invoke(t, text, "import", "carvel", "-", "--render", out); got.Code != 1 || !strings.Contains(got.Err, "holds a package already") {
		t.Errorf("the second time: %+v", got)
	}
}

func TestImportRendersCharts(t *testing.T) {
	record := standIn(t, "helm", tillObjects)
	values := clitest.ValuesFile(t, "size: 3\n")
	text := carvelWith("{inline: {paths: {chart/Chart.yaml: 'name: till'}}}", "{helmTemplate: {path: chart, name: shop}}")
	out := filepath.Join(t.TempDir(), "till")
	if got := clitest.Invoke(t, text, "import", "carvel", "-", "--render", out, "--values", values, "--namespace", "shops"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	fetched := carvelWith("{helmChart: {name: till, version: 1.2.3, repository: {url: 'https://charts.example.com'}}}", "{helmTemplate: {}}, {kbld: {}}")
	if got := clitest.Invoke(t, fetched, "import", "carvel", "-", "--render", out+"-fetched"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	want := "argument template\nargument shop\nargument ./chart\nargument --include-crds\nargument --namespace\nargument shops\nargument --values\nargument " + values + "\nfile ./chart/Chart.yaml\n" +
		"argument template\nargument till\nargument till\nargument --repo\nargument https://charts.example.com\nargument --version\nargument 1.2.3\nargument --include-crds\n"
	if got := record(); got != want {
		t.Errorf("helm was run with\n%s, want\n%s", got, want)
	}
}

// What a Package asks for reaches no file outside of its own and is no option of a tool; what cannot be rendered is named whole.
func TestImportRefusesToRender(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	inline := "{inline: {paths: {a.yaml: '{}'}}}"
	out := filepath.Join(t.TempDir(), "till")
	for reason, test := range map[string]struct{ text, want string }{
		"no ytt":            {carvelWith(inline, "{ytt: {}}"), "ytt is not on the PATH, and the package is rendered by it: install it from https://carvel.dev/ytt"},
		"a file outside":    {carvelWith(inline, "{ytt: {paths: [../../etc/passwd]}}"), `it asks for template[0].ytt.paths "../../etc/passwd", which cannot be rendered here`},
		"an absolute file":  {carvelWith(inline, "{ytt: {paths: [/etc/passwd]}}"), `template[0].ytt.paths "/etc/passwd"`},
		"a written path":    {carvelWith("{inline: {paths: {../a.yaml: '{}'}}}", "{ytt: {}}"), "../a.yaml"},
		"an option":         {carvelWith(inline, "{helmTemplate: {name: '--post-renderer=x'}}"), "template[0].helmTemplate.name"},
		"a local chart":     {carvelWith("{helmChart: {name: a, repository: {url: 'file:///etc'}}}", "{helmTemplate: {}}"), "fetch[0].helmChart of no https or oci repository"},
		"an option of helm": {carvelWith("{helmChart: {name: '--debug', repository: {url: 'https://a'}}}", "{helmTemplate: {}}"), "it asks for fetch[0].helmChart,"},
		"a chart outside":   {carvelWith(inline, "{helmTemplate: {path: ../a}}"), `template[0].helmTemplate.path "../a"`},
		"everything that":   {carvelWith("{git: {url: a}}", "{sops: {}}, {cue: {}}, {ytt: {valuesFrom: [a]}}, {kbld: {other: a}}"), "it asks for fetch[0].git url, template[0].sops, template[1].cue, template[2].ytt.valuesFrom, template[3].kbld.other, which cannot be rendered here: render it by kapp-controller's own tools"},
		"several":           {carvelWith(inline, "") + "---\n" + strings.ReplaceAll(carvelWith(inline, ""), "1.0.0", "2.0.0"), "there are 2 Packages in the input: choose one by --package NAME/VERSION, of till.tools.example.com/1.0.0, till.tools.example.com/2.0.0"},
		"none":              {"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n", "there is no Package of data.packaging.carvel.dev in the input"},
		"no object in them": {carvelWith(inline, ""), "nothing was written"},
	} {
		got := clitest.Invoke(t, test.text, "import", "carvel", "-", "--render", out)
		if _, err := os.Stat(out); got.Code != 1 || !strings.Contains(got.Err, test.want) || err == nil {
			t.Errorf("%s: %+v, want %s", reason, got, test.want)
		}
	}
}
