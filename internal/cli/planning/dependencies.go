package planning

import (
	"cmp"
	"context"
	"fmt"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// resolve reads the installed packages, once.
func (p *Planned) resolve(ctx context.Context, cl *cluster.Cluster) (_ *desired.Resolution, err error) {
	if p.resolution == nil {
		p.resolution, err = p.chooser(cl).Resolution(ctx, p.there.RESTMapper())
	}
	return p.resolution, err
}

// depend adds to a plan the packages that would be installed or changed as dependencies, as the
// manager would decide given the current content of the cluster.
func (p *Planned) depend(ctx context.Context, cl *cluster.Cluster, plan *dryrun.Plan) error {
	spec := p.Pkg.PackageSpec()
	required := snapshot.Overridden(p.Loaded.Dependencies, spec.Dependencies)
	if len(required) == 0 {
		return nil
	}

	resolution, err := p.resolve(ctx, cl)
	if err != nil {
		return err
	}

	for _, what := range resolution.Hidden {
		plan.Warnings = append(plan.Warnings, "you may not read "+what+", so the plan for dependencies might be wrong")
	}

	root := resolver.Root{
		Instance: snapshot.InstanceOf(p.Pkg), Package: p.Loaded.CatalogName, Version: p.Loaded.Manifest.Spec.Version,
		Dependencies: required, Unique: p.Loaded.UniqueInScope, UserManaged: desired.UserManages(spec),
	}

	// The offer's version counts, because a package does not have to state its own.
	if p.chosen != nil {
		root.Package, root.Version = p.ref, p.chosen.Version
	}
	solution, err := resolution.Solve(root)
	if err != nil {
		return err
	}

	plan.Depend(dependenciesOf(solution), installationsOf(solution))
	return nil
}

// dependenciesOf returns the outcome of each dependency of the solved packages.
func dependenciesOf(solution resolver.Plan) []dryrun.Dependency {
	var found []dryrun.Dependency
	for _, result := range solution.Results {
		for _, o := range result.Outcomes {
			d := dryrun.Dependency{
				Name: o.Dependency.Name, Optional: o.Dependency.Optional, Satisfied: o.Satisfied, Failed: o.Failed,
				Reason: o.Reason, Message: o.Message, Version: o.Version,
			}

			if o.Satisfier != nil {
				d.By = o.Satisfier.String()
			}
			found = append(found, d)
		}
	}

	return found
}

// installationsOf returns the packages that the manager would create or change first.
func installationsOf(solution resolver.Plan) []dryrun.Installation {
	var found []dryrun.Installation
	for _, step := range solution.Steps {
		i := dryrun.Installation{Object: step.Instance.String(), Package: step.Package, Version: step.Version, From: step.From, Because: []string{}}
		for _, n := range step.Needs {
			wants := "any version"
			if n.Dependency.Package != nil {
				wants = cmp.Or(n.Dependency.Package.Version, wants)
			} else if n.Dependency.API != nil {
				wants = n.Dependency.API.APIVersion + " " + n.Dependency.API.Kind
			}
			i.Because = append(i.Because, fmt.Sprintf("%s → %s (%s)", n.Dependent, n.Dependency.Name, wants))
		}
		found = append(found, i)
	}

	return found
}

// dependencies shows the packages that are installed, are missing, or would be installed or changed
// first.
func (t *Printer) dependencies(p *dryrun.Plan) {
	if len(p.Dependencies) == 0 {
		return
	}

	t.Line(t.Styles.Strong("Dependencies"))
	var rows [][]string
	for _, d := range p.Dependencies {
		mark := t.Styles.Busy("·")
		switch {
		case d.Satisfied:
			mark = t.Styles.Good("✓")
		case d.Failed:
			mark = t.Styles.Bad("✗")
		}
		rows = append(rows, []string{"    " + mark + " " + terminal.Line(d.Name), terminal.Line(d.By), terminal.Line(d.Version), terminal.Line(cmp.Or(d.Message, d.Reason))})
	}

	t.Rows("", rows)
	for _, i := range p.Installations {
		what := t.Styles.Good("+") + " " + terminal.Line(i.Object+"  "+i.Package+" "+i.Version)
		if i.From != "" {
			what = t.Styles.Busy("~") + " " + terminal.Line(i.Object+"  "+i.Package+" "+i.From+" → "+i.Version)
		}
		t.Line("    " + what)
		for _, because := range i.Because {
			t.Line("        " + t.Styles.Faint("needed by "+terminal.Line(because)))
		}
	}

	t.Line("")
}
