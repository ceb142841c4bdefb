package probes

import (
	"reflect"
	"strings"
	"testing"
)

func TestJQValue(t *testing.T) {
	t.Parallel()
	root := map[string]any{"a": int64(1), "list": []any{"x", "y"}}
	for _, tc := range []struct {
		text  string
		want  any
		found bool
		err   string
	}{
		{text: ".a", want: int64(1), found: true},
		{text: ".list | map(. + \"!\")", want: []any{"x!", "y!"}, found: true},
		{text: ".missing"},
		{text: "empty"},
		{text: "[][]"},
		{text: ".list[]", err: "more than one value"},
		{text: ".a | keys", err: "jq: "},
		{text: "def f: f; f", err: "not available here"},
		{text: "[limit(3; repeat(1))]", err: "not available here"},
		{text: ".list * 100000", err: "takes numbers"},
		{text: "[..] | [., .] | [., .] | [., .] | [., .] | [., .] | [., .] | [., .] | [., .] | [., .] | [., .] | [., .] | [., .] | [., .] | [., .] | [., .]", err: "it built more than"},
	} {
		compiled, err := CompileJQ(tc.text)
		var got any
		found := false
		if err == nil {
			got, found, err = compiled.Read(root)
		}
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: %v, %v", tc.text, got, err)
			}
			continue
		}
		if err != nil || found != tc.found || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %v, %t, %v", tc.text, got, found, err)
		}
	}
}
