package hostile

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// of reports whether a request lists ConfigMaps, or watches them.
func of(r *http.Request, watches bool) bool {
	return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/configmaps") && IsWatch(r) == watches
}

// initial refuses streamed lists.
func initial(s *Server, w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Query().Get("sendInitialEvents") != "true" {
		return false
	}
	s.answer(w, http.StatusBadRequest, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "BadRequest", "code": 400})
	return true
}

// fill writes this many bytes of text.
func fill(w io.Writer, bytes int) error {
	chunk := strings.Repeat("a", 64<<10)
	for ; bytes > 0; bytes -= len(chunk) {
		if _, err := io.WriteString(w, chunk[:min(bytes, len(chunk))]); err != nil {
			return err
		}
	}
	return nil
}

const object = `"object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": %q, "uid": %q, "resourceVersion": "%d", "labels": {"package-operator.run/cache": "True"}}, "data": {"a": "`

// WatchBomb sends an event of this many bytes in each watch.
func WatchBomb(bytes int) Attack {
	return func(s *Server, w http.ResponseWriter, r *http.Request) bool {
		if !of(r, true) || initial(s, w, r) {
			return false
		}
		if _, err := fmt.Fprintf(w, `{"type": "ADDED", `+object, "bomb", "bomb", 1000); err != nil {
			return true
		}
		if fill(w, bytes) == nil {
			_, _ = io.WriteString(w, `"}}}`+"\n")
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	}
}

// WatchNames keeps sending events of new objects, with a name and data of these sizes.
func WatchNames(name, bytes int) Attack {
	long := strings.Repeat("n", name)
	return func(s *Server, w http.ResponseWriter, r *http.Request) bool {
		if !of(r, true) || initial(s, w, r) {
			return false
		}
		for i := 1000; ; i++ {
			name := fmt.Sprintf("%08d-%s", i, long)
			if _, err := fmt.Fprintf(w, `{"type": "ADDED", `+object, name, name, i); err != nil || fill(w, bytes) != nil {
				return true
			}
			if _, err := io.WriteString(w, `"}}}`+"\n"); err != nil {
				return true
			}
		}
	}
}

// Pages answers lists with an endless number of pages. Each has this many objects, with a name and
// data of these sizes.
func Pages(objects, name, bytes int) Attack {
	long := strings.Repeat("n", name)
	var pages atomic.Int64
	return func(_ *Server, w http.ResponseWriter, r *http.Request) bool {
		if !of(r, false) {
			return false
		}
		page := pages.Add(1)
		_, _ = fmt.Fprintf(w, `{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "1000", "continue": "%d"}, "items": [`, page)
		for i := range objects {
			name := fmt.Sprintf("page-%d-%d-%s", page, i, long)
			separator := ", "
			if i == 0 {
				separator = ""
			}
			_, err := fmt.Fprintf(w, separator+`{"metadata": {"namespace": "default", "name": %q, "uid": %q, "resourceVersion": "1000"}, "data": {"a": "`, name, name)
			if err != nil || fill(w, bytes) != nil {
				return true
			}
			_, _ = io.WriteString(w, `"}}`)
		}
		_, _ = io.WriteString(w, "]}")
		return true
	}
}

// Nodes answers lists with an object of empty lists, which is little text that takes much memory.
func Nodes(bytes int) Attack {
	return func(_ *Server, w http.ResponseWriter, r *http.Request) bool {
		if !of(r, false) {
			return false
		}
		_, _ = io.WriteString(w, `{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "1000"}, "items": [{"metadata": {"name": "a", "uid": "a"}, "data": [[]`)
		chunk := strings.Repeat(",[]", 20_000)
		for range bytes / len(chunk) {
			if _, err := io.WriteString(w, chunk); err != nil {
				return true
			}
		}
		_, _ = io.WriteString(w, `]}]}`)
		return true
	}
}

// Discovery offers this many groups.
func Discovery(groups int) Attack {
	return func(_ *Server, w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/apis" {
			return false
		}
		_, _ = io.WriteString(w, `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [`)
		for i := range groups {
			separator := ", "
			if i == 0 {
				separator = ""
			}
			if _, err := fmt.Fprintf(w, `%s{"name": "group%d.example.com", "versions": [{"groupVersion": "group%d.example.com/v1", "version": "v1"}]}`, separator, i, i); err != nil {
				return true
			}
		}
		_, _ = io.WriteString(w, "]}")
		return true
	}
}

// SchemaBomb publishes a schema of ConfigMaps that refers to itself twice.
func SchemaBomb() Attack {
	return func(_ *Server, w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/openapi/v3/api/v1" {
			return false
		}
		_, _ = io.WriteString(w, `{"components": {"schemas": {"A": {"x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "ConfigMap"}],
			"allOf": [{"$ref": "#/components/schemas/A"}, {"$ref": "#/components/schemas/A"}]}}}}`)
		return true
	}
}

// VersionOnce refuses only the request for the version with this number, counted from 1.
func VersionOnce(number int64) Attack {
	var asked atomic.Int64
	return func(s *Server, w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/version" || asked.Add(1) != number {
			return false
		}
		s.answer(w, http.StatusServiceUnavailable, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "secret-of-the-target", "code": 503})
		return true
	}
}

// Trickle answers everything with one byte per interval.
func Trickle(interval time.Duration) Attack {
	return func(_ *Server, w http.ResponseWriter, r *http.Request) bool {
		for {
			if _, err := io.WriteString(w, " "); err != nil {
				return true
			}
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return true
			case <-time.After(interval):
			}
		}
	}
}

// Reset ends the connection of each list and watch.
func Reset() Attack {
	return func(_ *Server, _ http.ResponseWriter, r *http.Request) bool {
		if of(r, true) || of(r, false) {
			panic(http.ErrAbortHandler)
		}
		return false
	}
}

// Redirect redirects everything to a cloud's metadata address.
func Redirect() Attack {
	return func(_ *Server, w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusFound)
		return true
	}
}

// Identities claims to be another cluster each time.
func Identities() Attack {
	var asked atomic.Int64
	return func(s *Server, w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/namespaces/kube-system" {
			return false
		}
		s.WriteNamespace(w, "kube-system", fmt.Sprintf("uid-%d", asked.Add(1)))
		return true
	}
}
