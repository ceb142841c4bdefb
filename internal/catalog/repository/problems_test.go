package repository_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

const (
	head    = "apiVersion: manifests.package-operator.run/v1alpha1\nkind: Repository\nmetadata: {name: shop}\n---\n"
	isEntry = "apiVersion: manifests.package-operator.run/v1alpha1\nkind: RepositoryEntry\n"
	isMeta  = "apiVersion: data.packaging.carvel.dev/v1alpha1\nkind: PackageMetadata\n"
)

// carvel is a Package with replaced parts: old, new, old, new.
func carvel(replace ...string) string {
	return strings.NewReplacer(replace...).Replace(`apiVersion: data.packaging.carvel.dev/v1alpha1
kind: Package
metadata:
  name: shop.example.com.1.0.0
spec:
  refName: shop.example.com
  version: 1.0.0
  template:
    spec:
      fetch:
      - imgpkgBundle: {image: registry.example.com/shop:1.0.0}
      deploy:
      - kapp: {}
`)
}

func webEntry(replace ...string) string {
	return isEntry + strings.NewReplacer(replace...).Replace(
		"metadata: {name: web."+one[7:]+"}\ndata: {name: web, image: example.com/web, digest: "+one+", versions: [v1.0.0]}\n")
}

// positionAlone is a problem of a file that comes from a Secret.
var positionAlone = regexp.MustCompile(`^(Repository invalid|Invalid YAML|unknown GVK|Limit exceeded) in bad\.yaml( idx [0-9]+)?( line [0-9]+)?: ` +
	`the file comes from a Secret, so messages do not quote it\. kubectl package repository build shows the problems of a file\.$`)

// An unusable document is reported with its file, document, field and a remedy. The others are
// offered.
func TestReadProblems(t *testing.T) {
	t.Parallel()
	const good = "  version: 1.0.0\n"
	for _, test := range []struct {
		reason, text, want string
	}{
		{"no YAML", "a: [", "Invalid YAML in bad.yaml"},
		{"another kind", "apiVersion: v1\nkind: Secret\n", `unknown GVK in bad.yaml idx 0 line 2: kind: got apiVersion "v1" and kind "Secret"`},
		{"no object", "- a\n", `unknown GVK in bad.yaml idx 0 line 1: kind: got apiVersion "" and kind ""`},
		{"an unknown version of a kind", carvel("v1alpha1", "v2"), `got apiVersion "data.packaging.carvel.dev/v2"`},
		{"no version", carvel(good, ""), `bad.yaml idx 0 line 5: Package shop.example.com.1.0.0: spec.version: "" is not a semantic version. Write it as 1.2.3.`},
		{"a v", carvel(good, "  version: v1.0.0\n"), `"v1.0.0" is not a semantic version`},
		{"two numbers", carvel(good, "  version: '1.0'\n"), `"1.0" is not a semantic version`},
		{"leading zero", carvel(good, "  version: 1.00.0\n"), `"1.00.0" is not a semantic version`},
		{"a number", carvel(good, "  version: 1.0\n"), "spec.version: cannot unmarshal a number into string. Put it in quotes."},
		{"a very long version", carvel(good, "  version: 1.0.0-"+strings.Repeat("a", 300)+"\n"), "is not a semantic version"},
		{"another name", carvel("shop.example.com.1.0.0", "shop-1.0.0"), `metadata.name: it has to be refName and version: "shop.example.com.1.0.0"`},
		{"two segments", carvel("shop.example.com", "example.com"), `spec.refName: "example.com" has fewer than three segments`},
		{"a trailing dot", carvel("shop.example.com", "shop.example.com."), `"shop.example.com." is not a valid package name`},
		{"capitals", carvel("shop.example.com", "Shop.example.com"), `"Shop.example.com" is not a valid package name`},
		{"the name of a part", carvel("shop.example.com", "shop.example.part-1"), `"shop.example.part-1" ends as the objects of packages with many versions do`},
		{"a long name", carvel("shop.example.com", strings.Repeat("a.", 122)+"a"), "the name has 245 bytes; the limit is 240"},
		{"a date", carvel(good, good+"  releasedAt: yesterday\n"), `spec.releasedAt: "yesterday" is not a date`},
		{"an empty constraint", carvel(good, good+"  kubernetesVersionSelection: {constraints: ''}\n"), `spec.kubernetesVersionSelection.constraints: "" is not a range of versions`},
		{"a constraint", carvel(good, good+"  kubernetesVersionSelection: {constraints: some}\n"), `"some" is not a range of versions. Write it as ">=1.29".`},
		{"a revision", carvel("metadata:\n", "metadata:\n  annotations: {packaging.carvel.dev/revision: 1.x}\n"), `metadata.annotations[packaging.carvel.dev/revision]: "1.x" is not a revision`},
		{"a long revision", carvel("metadata:\n", "metadata:\n  annotations: {packaging.carvel.dev/revision: '"+strings.Repeat("1.", 130)+"1'}\n"), "is not a revision"},
		{"no image", carvel("registry.example.com/shop:1.0.0", "''"), `spec.template.spec.fetch[0].imgpkgBundle.image: "" is not an image reference`},
		{"an image", carvel("registry.example.com/shop:1.0.0", "Registry/A:B:C"), "is not an image reference"},
		{"no files", carvel("imgpkgBundle: {image: registry.example.com/shop:1.0.0}", "inline: {paths: {}}"), "inline.paths: it holds no files"},
		{"a path outside", carvel("imgpkgBundle: {image: registry.example.com/shop:1.0.0}", "inline: {paths: {../../etc/passwd: x}}"), `"../../etc/passwd" is not a file path`},
		{"an absolute path", carvel("imgpkgBundle: {image: registry.example.com/shop:1.0.0}", "inline: {paths: {/etc/passwd: x}}"), `"/etc/passwd" is not a file path`},
		{"a file that is not a text", carvel("imgpkgBundle: {image: registry.example.com/shop:1.0.0}", "inline: {paths: {a: 1}}"), `the content of "a" is not a text`},
		{"notes", carvel(good, good+"  releaseNotes: "+strings.Repeat("x", limits.AvailableVersionBytes)+"\n"), fmt.Sprintf("bytes; the limit is %d. Shorten its notes, schema or files.", limits.AvailableVersionBytes)},
		{"metadata of two segments", isMeta + "metadata: {name: example.com}\n", `metadata.name: "example.com" has fewer than three segments`},
		{"an icon that is not base64", isMeta + "metadata: {name: shop.example.com}\nspec: {iconSVGBase64: '<svg>'}\n", "bad.yaml idx 0"},
		{"an icon", isMeta + "metadata: {name: shop.example.com}\nspec: {longDescription: " + strings.Repeat("x", limits.AvailableDisplayBytes) + "}\n", "the description of the package has"},
		{"an entry without versions", webEntry("[v1.0.0]", "[]"), "data.versions: Required value"},
		{"an entry with an invalid version", webEntry("[v1.0.0]", "[one]"), `data.versions[0]: "one" is not a semantic version`},
		{"an entry's revision", webEntry("versions", "revision: new, versions"), `data.revision: "new" is not a revision`},
		{"an entry's package name", webEntry("versions", "packageName: A, versions"), `data.packageName: "A" is not a valid package name`},
		{"an entry's schema", webEntry("versions", "configSchema: [a], versions"), "data.configSchema: the schema is not a mapping. Write it as in the manifest of the package."},
		{"an entry's API", webEntry("versions", "provides: [{kind: Shop}], versions"), "data.provides[0].apiVersion: Required value"},
		{"an entry's dependency on itself", webEntry("versions", "dependencies: [{name: a, package: {name: web}}], versions"), "data.dependencies[0].package.name: the package cannot depend on itself. Remove it."},
		{"an entry's dependency of no form", webEntry("versions", "dependencies: [{name: a}], versions"), "data.dependencies[0]: exactly one of package and api is needed. Write one entry for each."},
		{"an entry's range", webEntry("versions", "dependencies: [{name: a, package: {name: db, version: some}}], versions"), `data.dependencies[0].package.version: "some" is not a range of versions`},
		{"an entry's dependencies", webEntry("versions", "dependencies: ["+strings.Repeat("{name: a, package: {name: db}},", 51)+"], versions"), "data.dependencies: 51 dependencies on packages and APIs; the limit is 50"},
		{"an entry's scope", webEntry("versions", "scopes: [All], versions"), `data.scopes[0]: "All" is not a scope. Supported: Cluster, Namespaced.`},
		{"where an entry is unique", webEntry("versions", "constraints: [{uniqueInScope: {scope: All}}], versions"), `data.constraints[0].uniqueInScope.scope: "All" is not a scope`},
		{"an invalid dependency", carvel(good, good+"  dependencies: [{name: a}]\n"), "spec.dependencies[0]: exactly one of gvk and packageRef is needed. Write one entry for each."},
		{"a dependency of both forms", carvel(good, good+"  dependencies: [{name: a, gvk: {apiVersion: v1, kind: X}, packageRef: {refName: db.example.com}}]\n"), "spec.dependencies[0]: exactly one of gvk"},
		{"a dependency without a name", carvel(good, good+"  dependencies: [{packageRef: {refName: db.example.com}}]\n"), "spec.dependencies[0].name: Required value"},
		{"a gvk without a kind", carvel(good, good+"  dependencies: [{name: a, gvk: {apiVersion: v1}}]\n"), "spec.dependencies[0].api.kind: Required value"},
		{"a dependency's constraint", carvel(good, good+"  dependencies: [{name: a, packageRef: {refName: db.example.com, versionSelection: {constraints: some}}}]\n"), `spec.dependencies[0].package.version: "some" is not a range of versions`},
		{"an installation type", carvel(good, good+"  installationType: OnePerPlanet\n"), `spec.installationType: Unsupported value: "OnePerPlanet". Supported: onePerCluster, onePerNamespace, noRestrictions.`},
		{"what a Package provides", carvel(good, good+"  provides: [{apiVersion: a/b/c, kind: X}]\n"), `spec.provides[0].apiVersion: "a/b/c" is not a valid apiVersion`},
		{"an entry of a reserved name", strings.ReplaceAll(webEntry(), "web", "web.part-1"), "data.name: "},
	} {
		files := map[string][]byte{"bad.yaml": []byte(test.text), "good.yaml": []byte(webEntry(one[7:], two[7:], "v1.0.0", "v0.1.0", "name: web", "name: good"))}
		content, err := repository.Read(files)
		if err != nil {
			t.Errorf("%s: %v", test.reason, err)
			continue
		}
		withheld, err := repository.ReadWith(files, repository.Options{Withheld: map[string]bool{"bad.yaml": true}})
		if err != nil || len(withheld.Problems) != len(content.Problems) || !positionAlone.MatchString(withheld.Problems[0]) {
			t.Errorf("%s, in a Secret: %v, %q", test.reason, err, withheld.Problems)
		}
		if len(content.Problems) == 0 || !strings.Contains(content.Problems[0], test.want) {
			t.Errorf("%s: got %.400q, want %q", test.reason, content.Problems, test.want)
		}
		if len(content.Packages) != 1 || content.Packages[0].Name != "good" {
			t.Errorf("%s: offered: %+v", test.reason, content.Packages)
		}
	}
}

// If two documents have one version with different content, neither is offered. Equal ones are.
func TestContradictions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason, a, b string
		versions     int
		want         string
	}{
		{"the same twice", carvel(), carvel(), 1, ""},
		{"another image", carvel(), carvel("shop:1.0.0", "shop:other"), 0, "version 1.0.0 of shop.example.com is in a.yaml idx 0 with another content: neither is offered. Remove one of them."},
		{"an entry and a Package", carvel(), strings.NewReplacer("name: web,", "name: web, packageName: shop.example.com,").Replace(webEntry()), 0, "b.yaml idx 0"},
		{"versions of one digest", webEntry(), webEntry("v1.0.0", "v1.1.0"), 2, ""},
		{"a link that runs a script", carvel(), strings.NewReplacer("name: web,", "name: web, display: {name: Web, links: [{name: a, url: 'javascript:alert(1)'}]},").Replace(webEntry()), 2,
			`data.display.links[0].url: "javascript:alert(1)" is not a link to a page: the description of the package is not shown. Write it as https://example.com/page, without user name and password.`},
		{"metadata", isMeta + "metadata: {name: shop.example.com}\nspec: {displayName: A}\n---\n" + carvel(), isMeta + "metadata: {name: shop.example.com}\nspec: {displayName: B}\n", 1,
			"b.yaml idx 0 line 1: a.yaml idx 0 describes shop.example.com differently: neither is shown"},
	} {
		content, err := repository.Read(map[string][]byte{"a.yaml": []byte(test.a), "b.yaml": []byte(test.b), "c.yaml": []byte(head)})
		if test.versions == 0 && err != nil {
			content, err = &repository.Content{Problems: []string{err.Error()}}, nil
		}
		if err != nil {
			t.Errorf("%s: %v", test.reason, err)
			continue
		}
		n := 0
		for _, p := range content.Packages {
			n += len(p.Versions)
			if p.Display != nil {
				t.Errorf("%s: shown: %+v", test.reason, p.Display)
			}
		}
		if got := strings.Join(content.Problems, "\n"); n != test.versions || !strings.Contains(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%s: %d versions, problems %q", test.reason, n, got)
		}
	}
}

// A repository that is unusable as a whole is an error, so that its former content stays.
func TestReadRefusesTheWhole(t *testing.T) {
	t.Parallel()
	many := map[string][]byte{}
	for i := range limits.RepositoryOffers/limits.RepositoryVersions + 1 {
		many[fmt.Sprintf("%03d.yaml", i)] = entryOf1000(i, "")
	}

	large := map[string][]byte{}
	for i := range 5 {
		large[fmt.Sprintf("%d.yaml", i)] = entryOf1000(i, ", release: {notes: "+strings.Repeat("x", 30_000)+"}")
	}

	for _, test := range []struct {
		reason string
		files  map[string][]byte
		want   string
	}{
		{"no files", nil, "the repository has no document in a file *.yaml, *.yml or *.json: check the source and its subPath"},
		{"files of other kinds", map[string][]byte{"README.md": []byte("x"), ".github/a.yaml": []byte(head)}, "the repository has no document"},
		{"other documents", map[string][]byte{"a.yaml": []byte("kind: A\n")}, "the repository has no document of a known kind; the first problem: unknown GVK in a.yaml"},
		{"only broken documents", map[string][]byte{"a.yaml": []byte(carvel("version: 1", "version: v1"))}, "nothing in the repository can be used; the first problem: "},
		{"too many versions", many, fmt.Sprintf("the repository offers more than %d versions, which is the limit: withdraw old ones", limits.RepositoryOffers)},
		{"too large", large, fmt.Sprintf("what the repository offers has more than %d bytes, which is the limit", limits.RepositoryOfferBytes)},
		{"too large files", map[string][]byte{"a.yaml": make([]byte, limits.RepositoryBytes+1)}, fmt.Sprintf("bytes; the limit is %d", limits.RepositoryBytes)},
	} {
		content, err := repository.Read(test.files)
		if err == nil || !strings.Contains(err.Error(), test.want) || content != nil {
			t.Errorf("%s: got %v", test.reason, err)
		}
	}

	if content, err := repository.Read(map[string][]byte{"a.yaml": []byte(head)}); err != nil || len(content.Packages)+len(content.Problems) > 0 {
		t.Errorf("an empty repository: %+v, %v", content, err)
	}
}

func entryOf1000(i int, more string) []byte {
	var versions []string
	for j := range limits.RepositoryVersions {
		versions = append(versions, fmt.Sprintf("v%d.%d.0", i, j))
	}
	return []byte(webEntry("[v1.0.0]", "["+strings.Join(versions, ",")+"]"+more))
}

// A hundred problems are kept, and the others are counted.
func TestManyProblems(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{"good.yaml": []byte(webEntry())}
	for i := range 300 {
		files[fmt.Sprintf("%03d.yaml", i)] = []byte(carvel("version: 1.0.0", "version: none"))
	}
	files[strings.Repeat("x", limits.PathBytes)+".yaml"] = []byte(head)
	content, err := repository.Read(files)
	require.NoError(t, err)
	if n := len(content.Problems); n != limits.RepositoryProblems+1 || content.Problems[n-1] != "201 more problems are not shown; the limit is 100" {
		t.Errorf("%d problems, the last: %s", n, content.Problems[n-1])
	}
}

// Paths in hostile archives cannot draw on a terminal.
func TestHostilePaths(t *testing.T) {
	t.Parallel()
	content, err := repository.Read(map[string][]byte{"\x1b[2J\n.yaml": []byte("a: ["), "good.yaml": []byte(webEntry())})
	if err != nil || !strings.HasPrefix(content.Problems[0], `Invalid YAML in "\x1b[2J\n.yaml" idx 0`) {
		t.Errorf("%v, %+v", err, content)
	}
}

// The schema of values that ytt writes is not necessarily valid for Kubernetes. Such a version is
// offered anyway.
func TestForeignSchemasAreNotRequired(t *testing.T) {
	t.Parallel()
	const good, schema = "  version: 1.0.0\n", "  valuesSchema: {openAPIv3: %s}\n"
	for foreign, want := range map[string]string{
		"{type: string}":                   `{"type":"string"}`,
		"{}":                               "",
		"some":                             "",
		"{properties: {a: {type: array}}}": `{"properties":{"a":{"items":{"x-kubernetes-preserve-unknown-fields":true},"type":"array"}},"type":"object"}`,
		"{additionalProperties: false, oneOf: [{title: a}]}": `{"oneOf":[{"title":"a"}],"type":"object"}`,
	} {
		content, err := repository.Read(map[string][]byte{"a.yaml": []byte(carvel(good, good+fmt.Sprintf(schema, foreign)))})
		if err != nil || len(content.Problems) > 0 || len(content.Packages) != 1 {
			t.Errorf("%s: %v %+v", foreign, err, content)
			continue
		}
		v, got := content.Packages[0].Versions[0], ""
		if v.ConfigSchema != nil {
			got = string(v.ConfigSchema.Raw)
		}
		if got != want || v.Image == "" && len(v.Files) == 0 {
			t.Errorf("%s: %s, want %s", foreign, got, want)
		}
	}
}
