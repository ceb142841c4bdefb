package page

import (
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/limits"
)

type planView struct{ Path, Name, Text, Command string }

// PlanOf shows a plan as the command of it prints it; what names the change, such as "version 2.0.0".
func PlanOf(f Frame, t progress.Target, what, text, command string) *Page {
	p := newPage(f, "plan", "Plan of "+t.Name+", "+what, "packages", "")
	p.Of = planView{Path: PackagePath(t), Name: t.Name, Text: terminal.Text(short(text, limits.PagePlanBytes)), Command: command}
	return p
}
