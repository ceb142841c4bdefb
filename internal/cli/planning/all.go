package planning

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// plans are the plans of all installed packages.
type plans struct {
	Summary struct {
		Nothing int `json:"nothing"`
		Changes int `json:"changes"`
		Refused int `json:"refused"`
		Failed  int `json:"failed"`
	} `json:"summary"`
	Plans []*dryrun.Plan `json:"plans"`
	// Failed are packages that could not be planned.
	Failed []failure `json:"failed,omitempty"`
}

// failure is a package that could not be planned.
type failure struct {
	objectdiff.ID
	Message string `json:"message"`
}

// planAll plans each installed package in its installed version.
func (c *Planner) planAll(cmd *cobra.Command) error {
	if err := c.Output.Check(); err != nil {
		return command.UsageError(cmd, err)
	}

	ctx := cmd.Context()
	cl, err := c.Connect()
	if err != nil {
		return err
	}

	packages, hidden, err := cl.Packages(ctx)
	if err != nil {
		return cl.Explain("cannot read the packages", err)
	}
	// A plan of only some packages would suggest that the others do not change.
	if len(hidden) > 0 {
		return fmt.Errorf("you may not read %s, so they are not planned", strings.Join(hidden, ", "))
	}

	c.packages = packages
	all := &plans{Plans: []*dryrun.Plan{}}
	for _, pkg := range packages {
		plan, err := c.planInstalled(ctx, cl, pkg)
		// An interrupt is not a failure of the package.
		if ctx.Err() != nil {
			return ctx.Err()
		}
		all.add(pkg, plan, err)
	}

	if err := c.Output.Write(c.Streams.Out, all, all.text); err != nil {
		return err
	}
	return all.result()
}

// result returns the exit code of the plans as an error.
func (p *plans) result() error {
	switch {
	case p.Summary.Refused+p.Summary.Failed > 0:
		return command.ExitCode(1)
	case p.Summary.Changes > 0:
		return command.ExitCode(changesCode)
	}
	return nil
}

// planInstalled plans a package in its installed version and digest, even if its repository or tag
// has moved since.
func (c *Planner) planInstalled(ctx context.Context, cl *cluster.Cluster, pkg corev1alpha1.GenericPackage) (*dryrun.Plan, error) {
	at := *cl
	at.Namespace = cmp.Or(pkg.GetNamespace(), cl.Namespace)
	target := progress.TargetOf(pkg)
	planned, err := c.Load(ctx, &at, Wanted{Name: cluster.Name{Scope: target.Scope, Name: target.Name}, Edit: func(_ progress.Target, spec *corev1alpha1.PackageSpec) error {
		// The manager keeps the digest that it has unpacked, so the plan does not ask the registry
		// again.
		spec.ImagePullPolicy = corev1alpha1.ImagePullPolicyIfNotPresent
		if resolved := pkg.PackageStatus().Resolved; spec.PackageRef != nil && resolved != nil {
			// The newest version is the subject of a planned upgrade, not of this plan.
			spec.PackageRef.Version = resolved.Version
		}
		return nil
	}})
	if err != nil {
		return nil, err
	}

	return planned.plan(ctx, &at)
}

// add adds the plan of a package, or the error as its failure.
func (p *plans) add(pkg corev1alpha1.GenericPackage, plan *dryrun.Plan, err error) {
	if err != nil {
		id := objectdiff.ID{Kind: progress.TargetOf(pkg).Kind(), Namespace: pkg.GetNamespace(), Name: pkg.GetName()}
		p.Failed = append(p.Failed, failure{id, err.Error()})
		p.Summary.Failed++
		return
	}

	p.Plans = append(p.Plans, plan)
	switch plan.Outcome {
	case dryrun.OutcomeRefused:
		p.Summary.Refused++
	case dryrun.OutcomeChanges:
		p.Summary.Changes++
	default:
		p.Summary.Nothing++
	}
}

// text prints the summary, followed by each plan with changes.
func (p *plans) text(styles terminal.Styles) string {
	t := terminal.Writer{Styles: styles}
	t.Line(fmt.Sprintf("%s planned: %d nothing to do, %d with changes, %d refused, %d failed",

		terminal.Count(len(p.Plans)+len(p.Failed), "package"), p.Summary.Nothing, p.Summary.Changes, p.Summary.Refused, p.Summary.Failed))
	for _, f := range p.Failed {
		t.Line("")
		t.Line(styles.Bad("✗") + " " + terminal.Line(strings.TrimSpace(strings.ToLower(f.Kind)+" "+strings.TrimPrefix(f.Namespace+"/"+f.Name, "/"))))
		t.Line("    " + terminal.Line(strings.Join(strings.Fields(f.Message), " ")))
	}

	for _, plan := range p.Plans {
		if plan.Outcome != dryrun.OutcomeNothing {
			t.Line("")
			t.WriteString(Text(plan, styles))
		}
	}

	return t.String()
}
