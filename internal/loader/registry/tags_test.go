package registry

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/limits"
)

// A list of tags can have several pages on the same registry, and it has an end.
func TestTags(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		links []string // of the pages; empty ends the list
		tags  int      // of a page
		want  int
		text  string
	}{
		{"one page", []string{""}, 2, 2, ""},
		{"relative links", []string{"</v2/team/shop/tags/list?n=2&last=b>; rel=\"next\"", ""}, 2, 4, ""},
		{"a link to itself", []string{"</v2/team/shop/tags/list?n=1000>", "</v2/team/shop/tags/list?n=1000>"}, 2, 2, ""},
		{"a link elsewhere", []string{"<https://169.254.169.254/x?geheim>"}, 1, 0, "goes on at another host, 169.254.169.254"},
		{"no link", []string{"<%zz>"}, 1, 0, "a link that cannot be read"},
		{"too many", []string{""}, limits.Tags + 1, 0, fmt.Sprintf("more than %d tags", limits.Tags)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, httptest.NewServer)
			page := 0
			s.set(func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/tags/list") {
					return false
				}
				if test.links[page] != "" {
					w.Header().Set("Link", test.links[page])
				}
				page++
				_, _ = io.WriteString(w, `{"tags":["x"`+strings.Repeat(`,"x"`, test.tags-1)+`]}`)
				return true
			})
			tags, err := newPuller(t, Options{InsecureRegistries: []string{s.host}}).Tags(context.Background(), s.host+"/team/shop:v1")
			if test.text == "" {
				if err != nil || !slices.Equal(tags, slices.Repeat([]string{"x"}, test.want)) {
					t.Error(tags, err)
				}
				return
			}
			if reason, _ := reasonOf(err); reason == "" || !strings.Contains(err.Error(), test.text) || strings.Contains(err.Error(), "geheim") {
				t.Error(err)
			}
		})
	}
}
