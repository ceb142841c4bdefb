package livestate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// requests are the requests of a user: verb and path without query, sorted.
func requests(t *testing.T, audit *sandbox.Audit, from sandbox.Position, user string) []string {
	t.Helper()
	entries, err := audit.Since(t.Context(), from, sandbox.ByUser(user))
	require.NoError(t, err)
	var all []string
	for _, e := range entries {
		path, _, _ := strings.Cut(e.RequestURI, "?")
		all = append(all, fmt.Sprintf("%s %s", e.Verb, path))
	}
	slices.Sort(all)
	return all
}

// TestRequests counts: two requests of discovery and one for the version at the start, one watch
// per kind, none to map kinds, and none for a new CRD. It is not parallel, so that
// no other test changes the served kinds meanwhile.
func TestRequests(t *testing.T) {
	e := newEnv(t)
	user := unique("counted")
	config, err := shared.User(user, "system:masters")
	require.NoError(t, err)
	audit, err := shared.Audit()
	require.NoError(t, err)
	start, err := audit.Mark(t.Context())
	require.NoError(t, err)

	thing := crd(unique("counted")+".example.com", "Thing", apiextensionsv1.NamespaceScoped, "v1")
	gk := schema.GroupKind{Group: thing.Spec.Group, Kind: "Thing"}
	f, _ := follow(t, config)
	f.Use("a", []schema.GroupKind{configMapKind, gk})
	f.Use("b", []schema.GroupKind{configMapKind, secretKind})
	f.synced(t, configMapKind, secretKind)
	for range 10 {
		_, _ = f.Mapping(gk, "")
		_, _ = f.Mapping(configMapKind, "")
		f.Relist(secretKind) // no object was observed, so none has to be observed again
	}
	e.installCRD(t, thing)
	f.synced(t, gk)
	_, err = f.Mapping(gk, "v1")
	require.NoError(t, err)

	want := []string{
		"get /api", "get /apis", "get /version",
		"watch /api/v1/configmaps", "watch /api/v1/secrets",
		"watch /apis/apiextensions.k8s.io/v1/customresourcedefinitions",
		"watch /apis/apiregistration.k8s.io/v1/apiservices",
		"watch /apis/" + thing.Spec.Group + "/v1/things",
	}
	slices.Sort(want)
	got := requests(t, audit, start, user)
	// The API of a CRD can answer 404 for a moment after it is established.
	things := "watch /apis/" + thing.Spec.Group + "/v1/things"
	for i := slices.Index(got, things) + 1; i > 0 && i < len(got) && got[i] == things; {
		got = slices.Delete(got, i, i+1)
	}
	if !slices.Equal(got, want) {
		t.Errorf("requests:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
