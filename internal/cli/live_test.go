package cli

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

func TestLiveModel(t *testing.T) {
	t.Parallel()
	var m tea.Model = liveModel{begin: time.Now(), options: progress.FrameOptions{Title: "Installing x", Width: 40, Height: 10, Styles: terminal.Plain()}}
	draw := func(msgs ...tea.Msg) (string, tea.Cmd) {
		var cmd tea.Cmd
		for _, msg := range msgs {
			m, cmd = m.Update(msg)
		}
		return m.View().Content, cmd
	}
	state := progress.State{Noticed: true, Image: "example.com/web:v1"}
	first, _ := draw(stateMsg{state: state})
	if want := "Installing x                        0.0s\n⠋ image example.com/web:v1  loading"; first != want {
		t.Errorf("got\n%s\nwant\n%s", first, want)
	}
	second, again := draw(tickMsg{})
	if !strings.Contains(second, "⠙ image") || again == nil {
		t.Errorf("nothing moves:\n%s", second)
	}
	if narrow, _ := draw(tea.WindowSizeMsg{Width: 30, Height: 10}); len(strings.Split(narrow, "\n")[0]) != 30 {
		t.Errorf("the width of the window is not followed:\n%s", narrow)
	}
	tall, _ := draw(stateMsg{state: progress.State{Unpacked: true, Phases: []progress.Phase{{Name: "a"}, {Name: "b"}}}})
	short, _ := draw(stateMsg{state: progress.State{Unpacked: true}})
	if strings.Count(tall, "\n") != strings.Count(short, "\n") || m.(liveModel).padding() != 2 {
		t.Errorf("the picture shrinks from\n%s\nto\n%s", tall, short)
	}
	last, quit := draw(stateMsg{state: progress.State{Gone: true}, last: true})
	if !strings.HasSuffix(last, "\n") || quit == nil {
		t.Errorf("the last picture is %q", last)
	} else if _, ok := quit().(tea.QuitMsg); !ok {
		t.Errorf("the program goes on: %T", quit())
	}
}

func TestQuietEnvironment(t *testing.T) {
	t.Parallel()
	got := quiet([]string{"HOME=/h", "TERM=xterm-kitty", "TERM_PROGRAM=x", "WT_SESSION=1", "NO_COLOR=1"})
	if diff := cmp.Diff([]string{"HOME=/h", "NO_COLOR=1", "TERM=xterm-256color", "TERM_PROGRAM=Apple_Terminal"}, got); diff != "" {
		t.Error(diff)
	}
}
