// Draws every element with data-chart by ECharts, as SVG, in the look of the page.
//
// A chart can be walked through by the arrow keys; each point is then told to screen readers. What
// a chart shows stands in a table below it, too.
"use strict";

(() => {
  const NAMES = ["line-1", "line-2", "line-3", "line-4", "line-5"];
  const SCALE = [
    "scale-1",
    "scale-2",
    "scale-3",
    "scale-4",
    "scale-5",
    "scale-6",
    "scale-7",
    "scale-8",
  ];
  const charts = [];

  const colour = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  const percent = (share) => {
    const value = 100 * share;
    if (share !== 0 && Math.abs(value) < 0.05) return "< 0.1 %";
    return `${value.toFixed(1)} %`;
  };
  const number = (value) => value.toLocaleString("en", { maximumFractionDigits: 2 });
  const short = (value) =>
    value.toLocaleString("en", { notation: "compact", maximumFractionDigits: 1 });
  const writer = (spec) => (spec.percent ? percent : number);
  const cut = (text) => (text.length > 24 ? `${text.slice(0, 23)}…` : text);

  // ECharts measures text by itself, so it has to be told the font by name.
  const font = () => getComputedStyle(document.body).fontFamily;
  const text = () => ({ color: colour("ink-soft"), fontFamily: font(), fontSize: 12 });

  const base = () => ({
    animation: false,
    textStyle: { fontFamily: font() },
    color: NAMES.map(colour),
    grid: { left: 8, right: 16, top: 12, bottom: 8, containLabel: true },
    tooltip: {
      trigger: "item",
      renderMode: "richText",
      confine: true,
      backgroundColor: colour("panel"),
      borderColor: colour("line"),
      textStyle: { color: colour("ink"), fontSize: 12 },
    },
    aria: { enabled: false },
  });

  const axis = (more) => ({
    axisLabel: text(),
    axisLine: { lineStyle: { color: colour("line-strong") } },
    axisTick: { show: false },
    splitLine: { lineStyle: { color: colour("line") } },
    ...more,
  });
  const categories = (labels, more) => axis({ type: "category", data: labels, ...more });
  const values = (spec, more) =>
    axis({
      type: "value",
      axisLabel: {
        ...text(),
        formatter: spec.percent ? (share) => `${+(100 * share).toFixed(2)} %` : short,
      },
      ...more,
    });

  const legend = (spec) =>
    spec.series.length > 1
      ? { legend: { top: 0, left: 0, textStyle: text(), itemWidth: 12, itemHeight: 12 } }
      : {};
  // Room for the legend, which takes more lines on a telephone.
  const top = (spec) => (spec.series.length > 4 ? 68 : spec.series.length > 1 ? 44 : 12);

  const said = (spec) => (at) => {
    const told = spec.series
      .filter((each) => each.values[at] !== null)
      .map((each) => `${each.name}: ${writer(spec)(each.values[at])}`);
    return `${spec.labels[at]}${spec.axis ? ` ${spec.axis}` : ""}\n${told.join("\n")}`;
  };

  const bars = (spec) => ({
    option: {
      ...base(),
      ...legend(spec),
      grid: { ...base().grid, top: top(spec), bottom: 28 },
      xAxis: categories(spec.labels, {
        name: spec.axis,
        nameLocation: "middle",
        nameGap: 30,
        nameTextStyle: text(),
        splitLine: { show: false },
      }),
      yAxis: values(spec),
      series: spec.series.map((each) => ({
        type: "bar",
        name: each.name,
        barMaxWidth: 48,
        data: each.values.map((value, at) => ({
          value,
          ...((spec.bad ?? []).includes(at) && { itemStyle: { color: colour("bad") } }),
        })),
      })),
    },
    points: spec.labels.map((_, at) => at),
    say: said(spec),
  });

  const across = (spec, stack) => {
    const isAlone = !stack && spec.series.length === 1;
    return {
      option: {
        ...base(),
        ...legend(spec),
        grid: { ...base().grid, top: top(spec), right: isAlone ? 56 : 16 },
        xAxis: values(spec, stack ? { max: 1 } : {}),
        yAxis: categories(spec.labels, {
          inverse: true,
          axisLabel: { ...text(), formatter: cut },
        }),
        series: spec.series.map((each, at) => ({
          type: "bar",
          name: each.name,
          ...(stack && { color: colour(at + 1 < spec.series.length ? SCALE[at] : SCALE.at(-1)) }),
          stack,
          barMaxWidth: 22,
          data: each.values,
          ...(isAlone && {
            label: {
              show: true,
              position: "right",
              color: colour("ink-soft"),
              formatter: (point) => writer(spec)(point.value),
            },
          }),
        })),
      },
      points: spec.labels.map((_, at) => at),
      say: said(spec),
      height: top(spec) + 34 + spec.labels.length * (stack ? 34 : 16 + 20 * spec.series.length),
    };
  };

  const map = (spec) => {
    const most = Math.max(...spec.items.map((item) => item.loss), 1e-9);
    const told = (item) =>
      `${item.name}\n${number(item.rows)} rows in ${number(item.classes)} classes\n` +
      `${percent(item.loss)} lost` +
      (item.seconds === null ? "" : `\n${number(item.seconds)} s`);
    const shade = (loss) => SCALE[2 + Math.min(4, Math.floor((5 * loss) / (most * (1 + 1e-9))))];
    return {
      option: {
        ...base(),
        series: [
          {
            type: "treemap",
            roam: false,
            nodeClick: false,
            breadcrumb: { show: false },
            left: 0,
            right: 0,
            top: 0,
            bottom: 0,
            itemStyle: { borderColor: colour("panel"), borderWidth: 2, gapWidth: 2 },
            label: {
              fontSize: 12,
              lineHeight: 17,
              formatter: (node) => {
                const item = spec.items[node.data.at];
                const time = item.seconds === null ? "" : `\n${number(item.seconds)} s`;
                return `${item.name.replace("fragment ", "#")}\n${short(item.rows)} rows\n${percent(item.loss)}${time}`;
              },
            },
            data: spec.items.map((item, at) => ({
              name: item.name,
              value: item.rows,
              at,
              itemStyle: { color: colour(shade(item.loss)) },
              label: { color: colour(`${shade(item.loss)}-ink`) },
            })),
          },
        ],
      },
      points: spec.items.map((_, at) => at),
      say: (at) => told(spec.items[at]),
    };
  };

  const lines = (spec) => {
    const points = spec.series.flatMap((each) =>
      each.points.map(([k, loss]) => ({ name: each.name, k, loss })),
    );
    const ks = [...points.map((point) => point.k), ...spec.at.map((each) => each.point[0])];
    return {
      option: {
        ...base(),
        legend: { top: 0, left: 0, textStyle: text() },
        grid: { ...base().grid, top: 44, bottom: 28 },
        xAxis: axis({
          type: "log",
          logBase: 2,
          min: Math.min(...ks) / 1.2,
          max: Math.max(...ks) * 1.2,
          name: "k",
          nameLocation: "middle",
          nameGap: 30,
          nameTextStyle: text(),
          axisLabel: { ...text(), formatter: (k) => number(Math.round(k)) },
        }),
        yAxis: values({ percent: true }),
        series: [
          ...spec.series.map((each, at) => ({
            type: "line",
            name: each.name,
            data: each.points,
            symbol: ["circle", "rect", "triangle", "diamond", "roundRect"][at % 5],
            symbolSize: 8,
            lineStyle: { width: 2, type: ["solid", "dashed", "dotted"][at % 3] },
          })),
          ...spec.at.map((each) => ({
            type: "scatter",
            name: each.name,
            data: [each.point],
            symbol: "pin",
            symbolSize: 32,
            itemStyle: { color: colour("bad") },
            label: { show: spec.at.length > 1, formatter: each.name, color: colour("page") },
          })),
        ],
      },
      points: points.map((_, at) => at),
      say: (at) => `${points[at].name}, k = ${points[at].k}: ${percent(points[at].loss)} lost`,
    };
  };

  const spark = (spec) => {
    const least = Math.min(...spec.values);
    const most = Math.max(...spec.values);
    const room = (most - least) * 0.15 || most * 0.1 || 0.01;
    return {
      option: {
        ...base(),
        grid: { left: 6, right: 6, top: 6, bottom: 6 },
        tooltip: { ...base().tooltip, trigger: "axis" },
        xAxis: { type: "category", data: spec.labels, show: false },
        yAxis: { type: "value", min: least - room, max: most + room, show: false },
        series: [
          {
            type: "line",
            data: spec.values.map((value, at) => ({
              value,
              symbol: "circle",
              symbolSize: spec.marked.includes(at) ? 8 : at === spec.values.length - 1 ? 6 : 1,
              itemStyle: { color: colour(spec.marked.includes(at) ? "bad" : "line-1") },
            })),
            showAllSymbol: true,
            lineStyle: { width: 2, color: colour("line-1") },
          },
        ],
      },
      points: spec.labels.map((_, at) => at),
      say: (at) => `${spec.labels[at]}\n${percent(spec.values[at])} lost`,
    };
  };

  const KINDS = {
    bars,
    across: (spec) => across(spec, undefined),
    stacked: (spec) => across(spec, "all"),
    map,
    lines,
    spark,
  };

  // One chart of the page: drawn when it is first seen, drawn anew when the look changes.
  class Drawn {
    constructor(element) {
      this.element = element;
      this.spec = JSON.parse(element.dataset.chart);
      this.chart = null;
      this.at = -1;
      element.addEventListener("keydown", (event) => this.key(event));
      element.addEventListener("blur", () => this.chart?.dispatchAction({ type: "hideTip" }));
    }

    draw() {
      this.drawing = KINDS[this.spec.kind](this.spec);
      const option = this.drawing.option;
      option.tooltip.formatter = (point) => {
        const one = Array.isArray(point) ? point[0] : point;
        if (one.seriesType === "scatter") {
          return `${one.seriesName}, k = ${one.value[0]}: ${percent(one.value[1])} lost`;
        }
        return this.drawing.say(this.pointOf(one));
      };
      if (this.drawing.height) this.element.style.height = `${this.drawing.height}px`;
      this.chart ??= window.echarts.init(this.element, null, { renderer: "svg" });
      this.chart.resize();
      this.chart.setOption(option, true);
      this.element.dataset.drawn = "true";
    }

    // Which of the points of the drawing ECharts means.
    pointOf(one) {
      if (this.spec.kind === "map") return one.data.at;
      if (this.spec.kind !== "lines") return one.dataIndex;
      const before = this.spec.series.slice(0, one.seriesIndex);
      return before.reduce((sum, each) => sum + each.points.length, 0) + one.dataIndex;
    }

    key(event) {
      const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
      const count = this.drawing?.points.length ?? 0;
      if (!(event.key in steps) || count === 0) return;
      event.preventDefault();
      this.at = this.at < 0 ? 0 : (this.at + steps[event.key] + count) % count;
      this.chart.dispatchAction({ type: "showTip", ...this.place(this.at) });
      document.getElementById("told").textContent = this.drawing
        .say(this.at)
        .replaceAll("\n", ", ");
    }

    place(at) {
      if (this.spec.kind === "map") return { seriesIndex: 0, name: this.spec.items[at].name };
      if (this.spec.kind !== "lines") return { seriesIndex: 0, dataIndex: at };
      let seriesIndex = 0;
      while (at >= this.spec.series[seriesIndex].points.length) {
        at -= this.spec.series[seriesIndex].points.length;
        seriesIndex += 1;
      }
      return { seriesIndex, dataIndex: at };
    }
  }

  const seen = new IntersectionObserver((changes) => {
    for (const change of changes) {
      const drawn = charts.find((each) => each.element === change.target);
      if (change.isIntersecting && drawn.chart === null) drawn.draw();
    }
  });
  for (const element of document.querySelectorAll("[data-chart]")) {
    charts.push(new Drawn(element));
    seen.observe(element);
  }

  const again = (action) => () => charts.filter((each) => each.chart !== null).forEach(action);
  document.addEventListener(
    "look",
    again((each) => each.draw()),
  );
  window.addEventListener(
    "resize",
    again((each) => each.chart.resize()),
  );
  window.addEventListener("beforeprint", () => charts.forEach((each) => each.draw()));
})();
