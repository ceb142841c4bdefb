package page

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lockstep.run/lockstep/internal/limits"
)

// Repository is a repository as it stands.
type Repository struct {
	Namespace, Name string
	// Source in one word, and its address without credentials.
	Source, Address string
	// State in a word, and whether it works.
	State              string
	Works              metav1.ConditionStatus
	Packages, Versions int32
	Problems           []string
	// Flags select it in commands.
	Flags   string
	Created metav1.Time
}

// Newer is a package that is not at the newest version that is offered.
type Newer struct {
	Namespace, Name, Package          string
	Installed, Wanted, Newest, Reason string
	// Path of its page, and the arguments that select it.
	Path, Flags string
}

// Catalogue has the offers of repositories for installed packages.
type Catalogue struct {
	Repositories []Repository
	Newer        []Newer
	// ByImage is the number of packages that follow no repository.
	ByImage int
	// At is when the packages were compared; zero before that. Note is why they were not.
	At   time.Time
	Note string
}

type repositoryItem struct {
	Repository
	Tone Tone
	Age  string
	More int
}

type newerItem struct {
	Newer
	Link string
	// Plan is a link, and Command prints the same; empty where there is no newer version.
	Plan, Command string
	Tone          Tone
}

type newerList struct {
	Items    []newerItem
	More     int
	ByImage  int
	Compared bool
	At, Note string
}

// mostProblems bounds the problems of one repository.
const mostProblems = 10

// CatalogueOf draws repositories, and packages that are not at their newest version.
func CatalogueOf(f Frame, c Catalogue) *Page {
	p := newPage(f, "catalogue", "Catalogue", "catalogue", "catalogue/stream")
	list := newerList{ByImage: c.ByImage, Compared: !c.At.IsZero(), At: c.At.Format(time.TimeOnly), Note: c.Note, More: max(len(c.Newer)-limits.PageRows, 0)}
	for _, n := range c.Newer[:len(c.Newer)-list.More] {
		item := newerItem{Newer: n, Link: f.Base + n.Path, Tone: ToneWait}
		if n.Wanted == "" {
			item.Tone = ToneBad
		}
		if n.Newest != "" && n.Newest != n.Installed {
			item.Command = "kubectl package plan " + n.Flags + " --version " + n.Newest
			item.Plan = f.Base + n.Path + "/plan" + query("version", n.Newest)
		}
		list.Items = append(list.Items, item)
	}
	p.fragment("newer", list)
	items := make([]repositoryItem, 0, len(c.Repositories))
	for _, r := range c.Repositories[:min(len(c.Repositories), limits.PageRows)] {
		item := repositoryItem{Repository: r, Age: age(r.Created, f.Now), Tone: ToneBusy, More: max(len(r.Problems)-mostProblems, 0)}
		switch {
		case r.Works == metav1.ConditionTrue:
			item.Tone = ToneGood
		case r.Works == metav1.ConditionFalse:
			item.Tone = ToneBad
		case strings.Contains(r.State, "paused"):
			item.Tone = ToneHold
		}
		item.Problems = r.Problems[:len(r.Problems)-item.More]
		items = append(items, item)
	}
	p.fragment("repositories", items)
	return p
}
