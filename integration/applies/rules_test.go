package applies_test

import (
	"testing"

	"lockstep.run/lockstep/test/require"
)

// TestJudge judges objects by hand.
func TestJudge(t *testing.T) {
	t.Parallel()
	empty := map[string]any{}
	for name, tc := range map[string]struct {
		reason string
		outcome
		want []string
	}{
		"the same": {
			outcome: outcome{live: leaves{"/a": 1}, fresh: leaves{"/a": 1}},
		},
		"stated": {
			reason:  "what another writer gave a path of the version is corrected",
			outcome: outcome{live: leaves{"/a": 2}, fresh: leaves{"/a": 1}, stated: leaves{"/a": 1}, others: map[string]written{"/a": {value: 2}}},
			want:    []string{"/a"},
		},
		"theirs": {
			outcome: outcome{live: leaves{"/a": 1, "/b": 2}, fresh: leaves{"/a": 1}, stated: leaves{"/a": 1}, others: map[string]written{"/b": {value: 2}}},
		},
		"nobody's": {
			reason:  "no other writer has written it",
			outcome: outcome{live: leaves{"/b": 2}, fresh: leaves{}, former: values{"/b": {2}}, twins: []leaves{{"/b": 2}}},
			want:    []string{"/b"},
		},
		"a former default": {
			reason:  "kubectl apply leaves it as well",
			outcome: outcome{live: leaves{"/b": 2}, fresh: leaves{}, twins: []leaves{{}, {"/b": 2}}},
		},
		"a former default without a value to compare with": {
			outcome: outcome{live: leaves{"/b": 2}, fresh: leaves{}, defaults: values{"/b": {1, 2}}},
		},
		"another value than was stated": {
			reason:  "the API server has chosen it for a field of another client",
			outcome: outcome{live: leaves{"/b": 2}, fresh: leaves{"/b": 3}, former: values{"/b": {1}}, twins: []leaves{{"/b": 2}}},
		},
		"a former default, strictly": {
			outcome: outcome{live: leaves{"/b": 2}, fresh: leaves{}, twins: []leaves{{"/b": 2}}, strict: true},
			want:    []string{"/b"},
		},
		"theirs is lost": {
			reason:  "both kinds of kubectl apply leave it",
			outcome: outcome{live: leaves{}, fresh: leaves{}, others: map[string]written{"/b": {value: 2}}, twins: []leaves{{"/b": 2}, {"/b": 2}}},
			want:    []string{"/b"},
		},
		"theirs gave way": {
			reason:  "one kind of kubectl apply removes it",
			outcome: outcome{live: leaves{}, fresh: leaves{}, others: map[string]written{"/b": {value: 2}}, twins: []leaves{{}, {"/b": 2}}},
		},
		"theirs is left by a kind that leaves more": {
			reason:  "that kind has not had the effect that the version states",
			outcome: outcome{live: leaves{"/a": 1}, fresh: leaves{"/a": 1}, stated: leaves{"/a": 1}, others: map[string]written{"/b": {value: 2}}, twins: []leaves{{"/b": 2}}},
		},
		"replicas are lost": {
			reason:  "they stay after any kubectl apply",
			outcome: outcome{live: leaves{"/r": 1}, fresh: leaves{"/r": 1}, others: map[string]written{"/r": {value: 5, must: true}}},
			want:    []string{"/r"},
		},
		"an empty map is filled": {
			reason:  "it is stated to be empty",
			outcome: outcome{live: leaves{"/s/m/a": 1}, fresh: leaves{"/s/m": empty}, stated: leaves{"/s/m": empty}, others: map[string]written{"/s/m": {value: absent}, "/s/m/a": {value: 1}}},
			want:    []string{"/s/m", "/s/m/a"},
		},
		"an empty spec is filled": {
			reason:  "it leaves everything to others",
			outcome: outcome{live: leaves{"/spec/a": 1}, fresh: leaves{"/spec": empty}, stated: leaves{"/spec": empty}, others: map[string]written{"/spec/a": {value: 1}}},
		},
		"an empty spec is lost": {
			outcome: outcome{live: leaves{}, fresh: leaves{"/spec": empty}, stated: leaves{"/spec": empty}},
			want:    []string{"/spec"},
		},
		"an empty map that the API server drops is filled": {
			reason:  "it has no statement",
			outcome: outcome{live: leaves{"/m/a": 1}, fresh: leaves{}, stated: leaves{"/m": empty}, others: map[string]written{"/m/a": {value: 1}}},
		},
		"a default in an empty map gave way": {
			outcome: outcome{live: leaves{"/s/m/a": 1}, fresh: leaves{"/s/m/a": 1}, stated: leaves{"/s/m": empty}, others: map[string]written{"/s/m/a": {value: 2}}, twins: []leaves{{"/s/m/a": 2}}},
		},
		"null": {
			reason:  "it is not an empty map",
			outcome: outcome{live: leaves{"/m": nil}, fresh: leaves{"/m": empty}, stated: leaves{"/m": empty}},
			want:    []string{"/m"},
		},
		"absent for null": {
			outcome: outcome{live: leaves{}, fresh: leaves{"/m": nil}, stated: leaves{"/m": nil}},
		},
		"a controller's": {
			reason:  "it is free, although it is stated",
			outcome: outcome{live: leaves{"/rules": 1}, fresh: leaves{"/rules": 2}, stated: leaves{"/rules": 2}, others: map[string]written{"/rules": {value: 1}}, free: []string{"/rules"}},
		},
		"what a controller will write": {
			outcome: outcome{live: leaves{"/rules": 1}, fresh: leaves{}, free: []string{"/rules"}},
		},
		"a default next to another manager's field": {
			reason:  "without it no map would have defaults",
			outcome: outcome{live: leaves{"/m/r": 3, "/m/d": 1}, fresh: leaves{}, others: map[string]written{"/m/r": {value: 3}}},
		},
		"said": {
			outcome: outcome{live: leaves{"/spec/clusterIP": 1}, fresh: leaves{"/spec/clusterIP": 2}, said: "spec.clusterIP cannot be removed"},
		},
		"said of what it is part of": {
			outcome: outcome{live: leaves{`/spec/ports/{"port":80}/name`: 1}, fresh: leaves{}, said: "spec.ports[0] cannot change"},
		},
		"said of another field": {
			outcome: outcome{live: leaves{"/spec/name": 1}, fresh: leaves{}, said: "spec.names and spec.other stay"},
			want:    []string{"/spec/name"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, d := range judge(&tc.outcome) {
				got = append(got, d.path)
			}
			require.Equal(t, tc.want, got, tc.reason)
		})
	}
}
