package screen

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Column is one column of a table of Ts.
type Column[T any] struct {
	Title string
	Wide  bool // shown by -o wide only
	Rare  bool // shown where an item has it
	Right bool // aligned to the right: figures
	Value func(T) string
}

func (c *Column[T]) has(item T) bool { return c.Value(item) != "" }

// WriteTable writes a header and a line for each item. Columns are as wide as their widest
// cell and two spaces apart; no line ends in spaces. An empty cell shows as "-", so that
// columns can be counted, and every cell is Plain, so that an item is one line.
func WriteTable[T any](w io.Writer, f Format, columns []Column[T], items []T) error {
	var shown []Column[T]
	for _, c := range columns {
		if (!c.Wide || f == Wide) && (!c.Rare || slices.ContainsFunc(items, c.has)) {
			shown = append(shown, c)
		}
	}
	rows := make([][]string, 0, len(items)+1)
	rows = append(rows, make([]string, len(shown)))
	for i, c := range shown {
		rows[0][i] = c.Title
	}
	for _, item := range items {
		row := make([]string, len(shown))
		for i, c := range shown {
			if row[i] = Plain(c.Value(item)); row[i] == "" {
				row[i] = "-"
			}
		}
		rows = append(rows, row)
	}
	right := make([]bool, len(shown))
	for i, c := range shown {
		right[i] = c.Right
	}
	_, err := io.WriteString(w, layOut(rows, right))
	return err
}

// layOut pads cells to the width of their column, counted in characters.
func layOut(rows [][]string, right []bool) string {
	widths := make([]int, len(right))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if right[i] {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
			line.WriteString("  ")
		}
		out.WriteString(strings.TrimRight(line.String(), " "))
		out.WriteByte('\n')
	}
	return out.String()
}
