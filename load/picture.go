package load

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// The measures of the picture, in SVG units.
const (
	pictureWidth = 900
	panelHeight  = 360
	marginLeft   = 60
	marginRight  = 140 // for the legend
	marginTop    = 40
	marginBottom = 40
)

// palette tells neighbors apart, also in gray.
var palette = []string{"#1f77b4", "#2ca02c", "#9467bd", "#d62728", "#ff7f0e"}

// Picture writes an SVG: what share of the subagents passed each stage within
// which time, and how many lived when.
func (r Report) Picture(out io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", pictureWidth, 2*panelHeight)
	fmt.Fprintln(&b, `<rect width="100%" height="100%" fill="white"/>`)
	r.latencyPanel().draw(&b, 0)
	r.livePanel().draw(&b, panelHeight)
	fmt.Fprintln(&b, "</svg>")
	_, err := b.WriteTo(out)
	return err
}

// panel is one diagram.
type panel struct {
	title  string
	x, y   axis
	series []series
}

// axis maps values to 0..1 and has marks.
type axis struct {
	name     string
	min, max float64
	marks    []mark
}

type mark struct {
	at    float64
	label string
}

type series struct {
	name   string
	points [][2]float64
}

// latencyPanel has a line for each stage: how many percent took at most x ms, on
// a logarithmic axis.
func (r Report) latencyPanel() panel {
	p := panel{
		title: fmt.Sprintf("%d subagents, %d at once, from %d processes: share that took at most so long", r.Scenario.Children, r.Scenario.Concurrency, r.Scenario.Clients),
		y:     axis{name: "%", max: 100},
	}
	for percent := 0.0; percent <= 100; percent += 20 {
		p.y.marks = append(p.y.marks, mark{percent, fmt.Sprint(percent)})
	}
	most := 1.0
	for _, stage := range Stages {
		times := slices.Sorted(slices.Values(r.stages[stage]))
		line := series{name: strings.ReplaceAll(string(stage), "_", " ")}
		const points = 200
		for n := range points + 1 {
			if len(times) == 0 {
				break
			}
			ms := max(milliseconds(times[(len(times)-1)*n/points]), 0.1)
			line.points = append(line.points, [2]float64{math.Log10(ms), float64(n) * 100 / points})
			most = max(most, ms)
		}
		p.series = append(p.series, line)
	}
	p.x = axis{name: "ms", min: -1, max: math.Ceil(math.Log10(most))}
	for exponent := p.x.min; exponent <= p.x.max; exponent++ {
		p.x.marks = append(p.x.marks, mark{exponent, fmt.Sprint(math.Pow(10, exponent))})
	}
	return p
}

// livePanel shows how many were live and queued when.
func (r Report) livePanel() panel {
	p := panel{title: fmt.Sprintf("subagents over time; coordinator kills: %d", r.CoordinatorKills)}
	live, queued := series{name: "live"}, series{name: "queued"}
	for _, s := range r.Samples {
		at := float64(s.AtMS) / 1000
		live.points = append(live.points, [2]float64{at, float64(s.Live)})
		queued.points = append(queued.points, [2]float64{at, float64(s.Queued)})
	}
	p.series = []series{live, queued}
	p.x = linear("s", float64(r.DurationMS)/1000)
	p.y = linear("", float64(max(r.Peak.Live, r.Peak.Queued)))
	return p
}

// linear is an axis from 0 to at least most, with marks at round steps.
func linear(name string, most float64) axis {
	most = max(most, 1)
	step := math.Pow10(int(math.Floor(math.Log10(most))))
	for _, finer := range []float64{2, 2.5, 2} { // 10, 5, 2, 1
		if most/step >= 5 {
			break
		}
		step /= finer
	}
	a := axis{name: name, max: math.Ceil(most/step) * step}
	for at := 0.0; at <= a.max+step/2; at += step {
		a.marks = append(a.marks, mark{at, fmt.Sprintf("%.3g", at)})
	}
	return a
}

func (a axis) place(v float64) float64 { return (v - a.min) / (a.max - a.min) }

// draw writes the panel with its upper edge at top.
func (p panel) draw(b *bytes.Buffer, top float64) {
	const width, height = pictureWidth - marginLeft - marginRight, panelHeight - marginTop - marginBottom
	x := func(v float64) float64 { return marginLeft + p.x.place(v)*width }
	y := func(v float64) float64 { return top + marginTop + (1-p.y.place(v))*height }
	text := func(px, py float64, anchor, s string) {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", px, py, anchor, s)
	}
	line := func(x1, y1, x2, y2 float64, color string) {
		fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, color)
	}
	text(marginLeft, top+marginTop-16, "start", p.title)
	for _, m := range p.y.marks {
		line(marginLeft, y(m.at), marginLeft+width, y(m.at), "#e0e0e0")
		text(marginLeft-6, y(m.at)+4, "end", m.label+p.y.name)
	}
	for _, m := range p.x.marks {
		line(x(m.at), y(p.y.min), x(m.at), y(p.y.min)+4, "#606060")
		text(x(m.at), y(p.y.min)+18, "middle", m.label+" "+p.x.name)
	}
	line(marginLeft, y(p.y.min), marginLeft+width, y(p.y.min), "#606060")
	for n, s := range p.series {
		color := palette[n%len(palette)]
		if len(s.points) > 0 {
			fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="2" points="`, color)
			for _, at := range s.points {
				fmt.Fprintf(b, "%.1f,%.1f ", x(at[0]), y(at[1]))
			}
			fmt.Fprintln(b, `"/>`)
		}
		at := top + marginTop + 8 + float64(n)*18
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s" stroke-width="3"/>`+"\n", marginLeft+width+16, at, marginLeft+width+36, at, color)
		text(marginLeft+width+42, at+4, "start", s.name)
	}
}
