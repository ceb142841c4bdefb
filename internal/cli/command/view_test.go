package command

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lockstep.run/lockstep/internal/cli/progress"
)

func TestLive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := newLive(&out, "Installing x")
		width := 40
		l.size = func() (int, int) { return width, 10 }
		// drawn returns the output since the last call, without the erasure that it begins with.
		drawn := func(up string) string {
			t.Helper()
			text := out.String()
			out.Reset()
			if !strings.HasPrefix(text, up+"\r\x1b[J") {
				t.Errorf("the picture before is not erased: %q", text)
			}
			return strings.TrimPrefix(text, up+"\r\x1b[J")
		}
		show := func(s progress.State) { l.show(s, progress.Outcome{}, 0) }
		show(progress.State{Noticed: true, Image: "example.com/web:v1"})
		if got, want := drawn(""), "Installing x                        0.0s\r\n⠋ image example.com/web:v1  loading"; got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		<-time.After(frameInterval)
		synctest.Wait()
		if got := drawn("\x1b[1A"); !strings.Contains(got, "⠙ image") {
			t.Errorf("nothing moves:\n%s", got)
		}
		width = 30
		show(progress.State{Unpacked: true, Phases: []progress.Phase{{Name: "a"}, {Name: "b"}}})
		if got := drawn("\x1b[1A"); len(strings.Split(got, "\r\n")[0]) != 30 {
			t.Errorf("the width of the window is not followed:\n%s", got)
		}
		show(progress.State{Unpacked: true})
		drawn("\x1b[3A")
		l.close(progress.State{Gone: true})
		if got := drawn("\x1b[1A"); !strings.HasSuffix(got, "\n") {
			t.Errorf("the last picture is %q", got)
		}
		<-time.After(time.Second)
		synctest.Wait()
		if out.Len() > 0 {
			t.Errorf("drawn after the last picture: %q", out.String())
		}
	})
}

// An answer of the terminal to a query would be left for the shell to read.
func TestLiveQueriesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := newLive(&out, "Installing x")
		l.show(progress.State{Unpacked: true, Phases: []progress.Phase{{Name: "a"}, {Name: "b"}}}, progress.Outcome{}, 0)
		l.close(progress.State{Gone: true})
		known := regexp.MustCompile(`\x1b\[(\d+A|J)`)
		if rest := known.ReplaceAllString(out.String(), ""); strings.Contains(rest, "\x1b") {
			t.Errorf("got %q", rest)
		}
	})
}
