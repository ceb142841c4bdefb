package livestate_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

// extension is an API server of the old kind: without aggregated discovery and
// without streaming lists. It serves one object, in pages.
type extension struct {
	group string
	down  atomic.Bool
}

func (x *extension) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(code int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(v)
	}
	query := r.URL.Query()
	switch base := "/apis/" + x.group; {
	case x.down.Load():
		answer(http.StatusServiceUnavailable, metav1.Status{Status: "Failure", Code: http.StatusServiceUnavailable})
	case r.URL.Path == base+"/v1":
		answer(http.StatusOK, metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: x.group + "/v1",
			APIResources: []metav1.APIResource{{Name: "things", Kind: "Thing", Namespaced: true, Verbs: metav1.Verbs{"get", "list", "watch"}}},
		})
	case r.URL.Path != base+"/v1/things":
		answer(http.StatusNotFound, metav1.Status{Status: "Failure", Code: http.StatusNotFound})
	case query.Get("sendInitialEvents") != "":
		answer(http.StatusUnprocessableEntity, metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure",
			Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: "sendInitialEvents is forbidden",
		})
	case query.Get("watch") != "":
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		page, _ := strconv.Atoi(query.Get("continue"))
		list := obj{
			"apiVersion": x.group + "/v1", "kind": "ThingList", "metadata": obj{"resourceVersion": "7"},
			"items": []any{obj{"apiVersion": x.group + "/v1", "kind": "Thing", "metadata": obj{
				"namespace": "n", "name": "page-" + strconv.Itoa(page), "uid": "u" + strconv.Itoa(page), "resourceVersion": "5",
			}}},
		}
		if page < 2 && query.Get("limit") != "" {
			list["metadata"].(obj)["continue"] = strconv.Itoa(page + 1)
		}
		answer(http.StatusOK, list)
	}
}

// TestAggregatedAPI: the kinds of another API server appear with its APIService, stay
// while it is down, and are removed with it.
func TestAggregatedAPI(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	x := &extension{group: unique("aggregated") + ".example.com"}
	server := httptest.NewTLSServer(x)
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	require.NoError(t, e.admin.Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "extension"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: "localhost",
			Ports: []corev1.ServicePort{{Port: int32(number)}},
		},
	}))
	gk := schema.GroupKind{Group: x.group, Kind: "Thing"}
	f, _ := follow(t, e.config)
	f.Use("a", []schema.GroupKind{gk, configMapKind})
	f.synced(t, configMapKind)
	if s := f.State(gk); s.Served || s.Err != nil {
		t.Errorf("state before the APIService: %+v", s)
	}

	service := &unstructured.Unstructured{Object: obj{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": obj{"name": "v1." + x.group},
		"spec": obj{
			"group": x.group, "version": "v1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(10), "insecureSkipTLSVerify": true,
			"service": obj{"namespace": e.namespace, "name": "extension", "port": int64(number)},
		},
	}}
	require.NoError(t, e.admin.Create(t.Context(), service))
	f.synced(t, gk)
	for _, name := range []string{"page-0", "page-1", "page-2"} {
		if _, ok := f.Get(objects.Key{Group: x.group, Kind: "Thing", Namespace: "n", Name: name}); !ok {
			t.Errorf("%s is missing", name)
		}
	}

	x.down.Store(true)
	server.CloseClientConnections()
	eventually(t, "the error is shown", func() bool { return f.State(gk).Err != nil })
	if s := f.State(gk); !s.Served || !s.Synced {
		t.Errorf("an API that is down is still served: %+v", s)
	}
	x.down.Store(false)
	eventually(t, "the error has disappeared", func() bool { s := f.State(gk); return s.Err == nil && s.Synced })

	require.NoError(t, e.admin.Delete(t.Context(), service))
	eventually(t, "the kind has disappeared", func() bool { s := f.State(gk); return !s.Served && !s.Synced && s.Err == nil })
	if s := f.State(configMapKind); !s.Synced || s.Err != nil {
		t.Errorf("other kinds are not affected: %+v", s)
	}
}
