package versions

import (
	"fmt"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/test/require"
)

func TestParseConstraintRefuses(t *testing.T) {
	t.Parallel()
	cases := []struct{ reason, text, want string }{
		{"a word", "latest", `"latest" is not a constraint on versions: write it as ">=1.2, <2"`},
		{"an alternative that is missing", "1 || ", `"1 ||" is not a constraint on versions because of its alternative "": write it as ">=1.2, <2"`},
		{"an alternative that is wrong", "1 || => || 2", `because of its alternative "=>"`},
		{"too long", ">" + strings.Repeat(" ", 4096) + "1", "the constraint has 4098 bytes; the limit is 4096"},
		{"too many alternatives", "1" + strings.Repeat("||1", 32), `the constraint has 33 alternatives between "||"; the limit is 32`},
		{"too many comparisons", strings.Repeat(">1 ", 65), "the constraint has 65 comparisons; the limit is 64"},
		{"a long text is shown in part", strings.Repeat("é", 200), strings.Repeat("é", 99) + `…" is not a constraint`},
		{"what draws on a terminal is quoted", "\x1b[2J", `"\x1b[2J" is not a constraint`},
	}

	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			if got, err := ParseConstraint(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	cases := []struct {
		constraint, version string
		pre                 *corev1alpha1.Prereleases
		want                bool
	}{
		{"", "1.0.0", nil, true},
		{"", "v1.0.0", nil, true},
		{"", "1.0", nil, false},
		{"", "1.0.0-rc.1", nil, false},
		{"", "1.0.0-rc.1", &corev1alpha1.Prereleases{}, true},
		{"", "0.0.0-0", &corev1alpha1.Prereleases{}, true},
		{"1.0.0-rc.1", "1.0.0-rc.1", nil, true},
		{"1.0.0-rc.1", "1.0.0", nil, false},
		{"1 - 2||4.0.0", "4.0.0", nil, true},
		{"1 - 2||4.0.0", "2.9.0", nil, true},
		{"1 - 2||4.0.0", "3.0.0", nil, false},
		{">=1 <3 || ==5.0.0", "5.0.0", nil, true},
		{"!=1.0.0+a", "1.0.0+b", nil, false},
		{">=1.0.0+b", "1.0.0+a", nil, true},
		{strings.Repeat(" ", 4093) + ">=1", "1.0.0", nil, true},
	}

	for _, c := range cases {
		parsed, err := ParseConstraint(c.constraint)
		if err != nil {
			t.Errorf("%.100q: %v", c.constraint, err)
			continue
		}
		require.Equal(t, c.want, parsed.Matches(c.version, c.pre), fmt.Sprintf("%s within %.100q, prereleases %v", c.version, c.constraint, c.pre))
	}
}

func TestHighest(t *testing.T) {
	t.Parallel()
	tags := []string{"latest", "v1", "v1.2", "1.2.0", "v1.10.0", "v2.0.0-rc.1"}
	for _, c := range []struct {
		selection  corev1alpha1.VersionSelection
		tags       []string
		want, fail string
	}{
		{within(""), tags, "v1.10.0", ""},
		{within("<1.10"), tags, "1.2.0", ""},
		{within("", "rc"), tags, "v2.0.0-rc.1", ""},
		{within(">=2"), tags, "", "no tag fits: of 6, these are left: 3 as semantic versions"},
		{within("~1.2-0"), []string{"v1", "v1.2.1-rc.1"}, "", "to let prereleases take part, set spec.tagSelection.prereleases: {}"},
		{within("?"), tags, "", "is not a constraint on versions"},
		{within(""), nil, "", "there are no tags"},
	} {
		got, err := Highest(c.selection, "spec.tagSelection", c.tags)
		if got != c.want || (err == nil) != (c.fail == "") || err != nil && !strings.Contains(err.Error(), c.fail) {
			t.Errorf("%+v: %q, %v", c.selection, got, err)
		}
	}
}
