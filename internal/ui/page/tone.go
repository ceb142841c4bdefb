package page

import (
	"html/template"

	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/kube/summary"
)

// Tone is the meaning of a state. It has a colour and a shape, so that it can be recognized without
// the colour.
type Tone string

// Tones. The tones of packages that need help come first.
const (
	ToneBad  Tone = "bad"
	ToneHold Tone = "hold"
	ToneBusy Tone = "busy"
	ToneWait Tone = "wait"
	ToneIdle Tone = "idle"
	ToneGone Tone = "gone"
	ToneGood Tone = "good"
)

// tones are the tones of the states.
var tones = map[summary.Summary]Tone{
	summary.Unavailable: ToneBad, summary.Stalled: ToneBad, summary.Invalid: ToneBad, summary.Unresolved: ToneBad,
	summary.NotVerified: ToneBad, summary.ImagePullError: ToneBad, summary.Unsatisfied: ToneBad, summary.Target: ToneBad,
	summary.Deleting: ToneGone, summary.Waiting: ToneWait, summary.Awaiting: ToneWait, summary.Progressing: ToneBusy, summary.Pending: ToneIdle,
	summary.Paused: ToneHold, summary.Available: ToneGood,
}

// toneOf returns the tone of a state. An unknown state is idle.
func toneOf(s summary.Summary) Tone {
	if t, known := tones[s]; known {
		return t
	}
	return ToneIdle
}

// icon refers to a drawing of the document, which has one for each tone.
func icon(t Tone) template.HTML {
	return template.HTML(`<svg class="icon ` + string(t) + `" aria-hidden="true"><use href="#i-` + string(t) + `"></use></svg>`) //nolint:gosec // tones are constants
}

// Step is a phase in the strip of a package.
type Step struct {
	Name  string
	Tone  Tone
	Word  string
	Count string
}

// phaseTone returns the tone of a phase. failed means that it has objects that block for good.
func phaseTone(ph progress.Phase, failed bool) Tone {
	switch {
	case ph.Finished():
		return ToneGood
	case failed:
		return ToneBad
	case ph.Active():
		return ToneBusy
	}
	return ToneIdle
}

// objectTone returns the tone of an object. A blocked object is bad only in a bad phase. Otherwise
// it is only awaited.
func objectTone(o progress.Object, phase Tone) Tone {
	switch {
	case o.State == progress.ObjectReady:
		return ToneGood
	case o.State == progress.ObjectBlocked && phase == ToneBad:
		return ToneBad
	case o.State == progress.ObjectBlocked:
		return ToneWait
	case o.State == progress.ObjectWritten:
		return ToneBusy
	}
	return ToneIdle
}

// objectWords are states of objects.
var objectWords = map[progress.ObjectState]string{
	progress.ObjectWaiting: "not written yet", progress.ObjectWritten: "written", progress.ObjectBlocked: "not ready", progress.ObjectReady: "ready",
}
