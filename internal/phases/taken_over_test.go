package phases_test

import "testing"

// A revision that was overtaken holds nothing any more once the newest one has written all that it may have written.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	const older, newer = "revision app-2 claimed opened=2\n  first: Config/a=2\n  second: Config/b=2\n  third: Config/c=2\n", "revision app-3 claimed "
	for _, tc := range []struct {
		reason, newer string
		want          bool
	}{
		{"all that it opened is written", "opened=2\n  first: Config/a=3\n  second: Config/b=2\n  third: Config/c=3\nlive Config/a value=3\nlive Config/b value=2", true},
		{"in other phases, too", "opened=1\n  first: Config/a=3 Config/b=2 Config/d=3\n  second: Config/c=3\nlive Config/a value=3\nlive Config/b value=2\nlive Config/d value=3", true},
		{"one is not written", "opened=2\n  first: Config/a=3\n  second: Config/b=3\n  third: Config/c=3\nlive Config/a value=3\nlive Config/b value=2", false},
		{"one is controlled by another", "opened=2\n  first: Config/a=3\n  second: Config/b=3\n  third: Config/c=3\nlive Config/a value=3\nlive Config/b value=3 by=helm", false},
		{"a phase is not open", "opened=1\n  first: Config/a=3\n  second: Config/b=2\n  third: Config/c=3\nlive Config/a value=3\nlive Config/b value=2", false},
		{"one is not there any more", "opened=2\n  first: Config/a=3\n  second: Config/c=3\nlive Config/a value=3\nlive Config/c value=3", false},
		{"one that it never reached is not there", "opened=2\n  first: Config/a=3\n  second: Config/b=3\nlive Config/a value=3\nlive Config/b value=3", false},
		{"not all of the newer one is known", "opened=2 incomplete\n  first: Config/a=3\n  second: Config/b=3\n  third: Config/c=3\nlive Config/a value=3\nlive Config/b value=3", false},
	} {
		p, plan, _ := planned(t, older+newer+tc.newer)
		if got := p.revision("app-2").TakenOver(p.revision("app-3"), &plan.Reports[1]); got != tc.want {
			t.Errorf("%s: %v, %+v", tc.reason, got, plan.Reports[1])
		}
	}
}
