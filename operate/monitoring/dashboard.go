package monitoring

import (
	"encoding/json"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// query is a query of a panel; legend names its series.
type query struct{ expr, legend string }

// panel is a graph over time.
type panel struct {
	title, description, unit string
	queries                  []query
}

// rows are the rows of the dashboard. The variable namespace filters packages by namespace. Its
// value for all also matches cluster-scoped packages, which have no namespace.
var rows = []struct {
	title  string
	panels []panel
}{
	{"Packages", []panel{
		{"Packages by state", "In the words of kubectl package status.", "", []query{{`sum by (summary) (lockstep_packages)`, "{{summary}}"}}},
		{"Not available", "Packages that do not match their specs; kubectl package explain NAME explains why.", "", []query{
			{`max by (pko_namespace, pko_name, summary) (lockstep_package_summary{pko_namespace=~"$namespace", summary!="Available"})`, "{{pko_namespace}}/{{pko_name}}: {{summary}}"},
		}},
		{"Blocked for", "How long a package has been blocked, with the phase and the reason.", "s", []query{
			{`max by (pko_namespace, pko_name, phase, reason) (time() - lockstep_package_blocked_since_seconds{pko_namespace=~"$namespace"})`, "{{pko_namespace}}/{{pko_name}} {{phase}}: {{reason}}"},
		}},
		{"Being deleted for", "How long packages have been in deletion, and the reason for the wait.", "s", []query{
			{`max by (pko_namespace, pko_name, phase, reason) (time() - lockstep_package_deleting_since_seconds{pko_namespace=~"$namespace"})`, "{{pko_namespace}}/{{pko_name}} {{phase}}: {{reason}}"},
		}},
	}},
	{"Rollouts", []panel{
		{"Rollouts", "From the claim of a revision to its success.", "s", quantiles("lockstep_rollout_duration_seconds", "")},
		{"Phases", "From the opening of a phase until all of its objects were ready.", "s", quantiles("lockstep_phase_duration_seconds", "")},
		{"Loads", "Pulled, rendered and checked.", "s", quantiles("lockstep_load_duration_seconds", "outcome")},
		{"Pulls", "Pulls of images, including images in the cache.", "s", quantiles("lockstep_pull_duration_seconds", "outcome")},
		{"Writes", "Writes to managed objects, by purpose.", "ops", []query{{`sum by (action) (rate(lockstep_writes_total{outcome="performed"}[$__rate_interval]))`, "{{action}}"}}},
		{"Failed writes and fights", "Fights are corrections that another writer keeps changing back.", "ops", []query{
			{`sum by (action) (rate(lockstep_writes_total{outcome="failed"}[$__rate_interval]))`, "{{action}} failed"},
			{`sum(rate(lockstep_fights_total[$__rate_interval]))`, "fights"},
		}},
	}},
	{"What packages need", []panel{
		{"Clusters of targetRef", "", "", []query{{`sum by (state) (lockstep_targets)`, "{{state}}"}}},
		{"Dependencies", "", "", []query{{`sum by (state) (lockstep_dependencies)`, "{{state}}"}}},
		{"Repositories", "", "", []query{{`sum by (state) (lockstep_repositories)`, "{{state}}"}}},
		{"Repositories that are not ready", "", "", []query{
			{`max by (repository_namespace, repository) (lockstep_repository_ready{repository_namespace=~"$namespace"} != 1)`, "{{repository_namespace}}/{{repository}}"},
		}},
	}},
	{"Managers", []panel{
		{"Leaders", "One, except for a few seconds while another one takes over.", "", []query{{`sum(lockstep_leader)`, "leaders"}, {`count by (version) (lockstep_build_info)`, "{{version}}"}}},
		{"Requests to the API server", "None at rest.", "reqps", []query{{`sum by (method, code) (rate(rest_client_requests_total[$__rate_interval]))`, "{{method}} {{code}}"}}},
		{"Waiting requests of controllers", "", "", []query{{`sum by (controller) (workqueue_depth)`, "{{controller}}"}}},
		{"Memory", "", "bytes", []query{{`process_resident_memory_bytes * on (instance) lockstep_build_info`, "{{pod}}"}}},
		{"Managed objects", "Watched by the leader.", "", []query{{`sum by (gvk) (package_operator_managed_cache_objects_total)`, "{{gvk}}"}}},
	}},
}

// quantiles are the median and the 95th percentile of a histogram, by label if it is given.
func quantiles(name, label string) []query {
	by, legend := "le", ""
	if label != "" {
		by, legend = "le, "+label, " {{"+label+"}}"
	}
	of := func(q string) string {
		return "histogram_quantile(" + q + ", sum by (" + by + ") (rate(" + name + "_bucket[$__rate_interval])))"
	}
	return []query{{of("0.5"), "median" + legend}, {of("0.95"), "95 %" + legend}}
}

// queries are the queries of all panels.
func queries() []string {
	var all []string
	for _, row := range rows {
		for _, p := range row.panels {
			for _, q := range p.queries {
				all = append(all, q.expr)
			}
		}
	}
	return all
}

// dashboardJSON is the dashboard in Grafana's import format.
func dashboardJSON() ([]byte, error) {
	source := common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}
	//nolint:staticcheck // its successor is of a schema that Grafana 11 does not import
	board := dashboard.NewDashboardBuilder("Lockstep").Uid("lockstep").Tags([]string{"lockstep", "kubernetes"}).
		Description("Packages that Lockstep rolls out, and the managers that do it. What to do about alerts: docs/alerts.md.").
		Refresh("1m").Time("now-6h", "now").Readonly().
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus")).
		WithVariable(dashboard.NewQueryVariableBuilder("namespace").Label("Namespace of packages").Datasource(source).
			Query(dashboard.StringOrMap{String: cog.ToPtr("label_values(lockstep_package_summary, pko_namespace)")}).
			Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Multi(true).IncludeAll(true).AllValue(".*"))

	for _, row := range rows {
		board = board.WithRow(dashboard.NewRowBuilder(row.title))
		for _, p := range row.panels {
			graph := timeseries.NewPanelBuilder().Title(p.title).Description(p.description).Datasource(source).Height(8).Span(12).Min(0).
				Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom))
			if p.unit != "" {
				graph = graph.Unit(p.unit)
			}
			for _, q := range p.queries {
				graph = graph.WithTarget(prometheus.NewDataqueryBuilder().Datasource(source).Expr(q.expr).LegendFormat(q.legend).Range())
			}
			board = board.WithPanel(graph)
		}
	}

	built, err := board.Build()
	if err != nil {
		return nil, err
	}
	if err := built.Validate(); err != nil {
		return nil, err
	}

	content, err := json.MarshalIndent(built, "", "  ")
	return append(content, '\n'), err
}
