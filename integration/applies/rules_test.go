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
		"a former default, strictly": {
			outcome: outcome{live: leaves{"/b": 2}, fresh: leaves{}, twins: []leaves{{"/b": 2}}, strict: true},
			want:    []string{"/b"},
		},
		"theirs is lost": {
			reason:  "both kinds of kubectl apply leave it",
			outcome: outcome{live: leaves{}, fresh: leaves{}, others: map[string]written{"/b": {value: 2}}, twins: []leaves{{"/b": 2}, {"/b": 2}}},
			want:    []string{"/b"},
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
		"a controller's": {
			reason:  "it is free, although it is stated",
			outcome: outcome{live: leaves{"/rules": 1}, fresh: leaves{"/rules": 2}, stated: leaves{"/rules": 2}, others: map[string]written{"/rules": {value: 1}}, free: []string{"/rules"}},
		},
		"a default beside what is theirs": {
			reason:  "without it there would be no map that has defaults",
			outcome: outcome{live: leaves{"/m/r": 3, "/m/d": 1}, fresh: leaves{}, others: map[string]written{"/m/r": {value: 3}}},
		},
		"said": {
			outcome: outcome{live: leaves{"/spec/clusterIP": 1}, fresh: leaves{"/spec/clusterIP": 2}, said: "spec.clusterIP cannot be removed"},
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
