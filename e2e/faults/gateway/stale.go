package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// outdated returns the earlier version at which a list is served, if any.
func (l *lane) outdated(q *Request) string {
	return l.due(q, func(d Decision) bool { return d.Fault == ListStale && (q.Initial || q.List) }).Version
}

// asOf changes the query of a list to one for an earlier version.
func asOf(query url.Values, version string) url.Values {
	for _, name := range []string{"watch", "sendInitialEvents", "allowWatchBookmarks", "timeoutSeconds", "timeout", "limit", "continue"} {
		query.Del(name)
	}
	query.Set("resourceVersion", version)
	query.Set("resourceVersionMatch", "Exact")
	return query
}

// replay answers a streamed list with the objects of an earlier version. The caller continues
// with the watch from there.
func (l *lane) replay(w http.ResponseWriter, r *http.Request, version string) {
	answer, err := l.open(r, asOf(r.URL.Query(), version))
	if err != nil || answer.StatusCode != http.StatusOK {
		panic(http.ErrAbortHandler)
	}
	defer answer.Body.Close()
	var list struct {
		Kind       string           `json:"kind"`
		APIVersion string           `json:"apiVersion"`
		Items      []map[string]any `json:"items"`
	}
	if json.NewDecoder(answer.Body).Decode(&list) != nil {
		panic(http.ErrAbortHandler)
	}
	kind := strings.TrimSuffix(list.Kind, "List")
	out := flushing{w}
	for _, item := range list.Items {
		item["kind"], item["apiVersion"] = kind, list.APIVersion
		raw, err := json.Marshal(item)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		_, _ = fmt.Fprintf(out, `{"type":"ADDED","object":%s}`+"\n", raw)
	}
	_, _ = fmt.Fprintf(out, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":%q,"annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n", kind, list.APIVersion, version)
}
