/*
 * page.js - draws the plots of a report from the JSON block of the page, and makes tables sortable.
 *
 * A run has one colour everywhere. A figure is a function that returns a Chart.js configuration from the current state (runs shown, choices of
 * its section, theme); whatever changes, the figures concerned are built anew. With #selftest the page checks itself and writes what it found into an element of that id.
 */
(function () {
  'use strict';
  var data = JSON.parse(document.getElementById('data').textContent);
  var root = document.documentElement, errors = [], figures = [];
  window.addEventListener('error', function (e) { errors.push(String(e.message)); });

  var runs = data.runs.map(function (r, i) {
    var m = r.metrics || {}, e = m.evaluation || {};
    return {i: i, name: r.name, metrics: m, evaluation: e, sets: e.sets || {}, curves: e.curves || {}, average: m.average, log: r.log || {}, shown: true};
  });
  /* The tables of the program: metrics by name, names of measures in their order, and those that are certainties. */
  var METRICS = {}, MEASURES = data.measures.map(function (m) { return m.name; }), CERTAINTIES = data.measures.filter(function (m) { return m.certainty; }).map(function (m) { return m.name; });
  var NAMES = {flops: 'FLOP', training_seconds: 'training time, s', infer_seconds: 'prediction time, s'};
  data.metrics.forEach(function (m) { METRICS[m.name] = m; NAMES[m.name] = m.heading; });

  /* ---- small things ---- */
  function label(key) { return NAMES[key] || key.replace(/_/g, ' '); }
  function get(o, path) { return path.reduce(function (v, k) { return v === null || v === undefined ? undefined : v[k]; }, o); }
  function isNumber(v) { return typeof v === 'number' && isFinite(v); }
  function some(list) { return Array.isArray(list) && list.some(isNumber); }
  function unique(list) { return list.filter(function (v, i) { return list.indexOf(v) === i; }); }
  function shown(has) { return runs.filter(function (r) { return r.shown && has(r); }); }
  function css(name) { return getComputedStyle(root).getPropertyValue(name).trim(); }
  function colour(r) { return css('--run-' + r.i % 8); }
  function fade(hex, alpha) {
    var n = parseInt(hex.slice(1), 16);
    return 'rgba(' + (n >> 16) + ',' + (n >> 8 & 255) + ',' + (n & 255) + ',' + alpha + ')';
  }
  function text(v) {
    if (!isNumber(v)) return String(v);
    var a = Math.abs(v);
    if (v === Math.round(v) && a < 1e6) return String(v);
    if (a >= 1e12 || (a > 0 && a < 1e-4)) return v.toExponential(2);
    var units = ['', ' k', ' M', ' G'], u = 0;
    if (a >= 1e4) while (a >= 1000 && u < 3) { a /= 1000; v /= 1000; u++; }
    return String(Number(v.toPrecision(4))) + units[u];
  }
  function tick(v) {
    var a = Math.abs(v), units = ['', 'k', 'M', 'G', 'T'], u = 0;
    if (a > 0 && a < 1e-3) return v.toExponential(0);
    while (a >= 1000 && u < 4) { a /= 1000; v /= 1000; u++; }
    return String(Number(v.toPrecision(4))) + units[u];
  }
  function make(tag, attributes, children) {
    var e = document.createElement(tag);
    Object.keys(attributes || {}).forEach(function (k) { e.setAttribute(k, attributes[k]); });
    (children || []).forEach(function (c) { e.appendChild(typeof c === 'string' ? document.createTextNode(c) : c); });
    return e;
  }
  function points(xs, ys) {
    var out = [];
    for (var i = 0; xs && ys && i < xs.length; i++)
      if (isNumber(xs[i])) out.push({x: xs[i], y: isNumber(ys[i]) ? ys[i] : null});
    return out;
  }

  /* ---- figures ---- */
  var DASH = {solid: [], dashed: [6, 4], dotted: [2, 3]};
  var SHAPES = ['circle', 'rect', 'triangle', 'rectRot', 'crossRot', 'star', 'cross', 'rectRounded'];

  function line(r, pts, extra) {
    var c = colour(r);
    return Object.assign({label: r.name, data: pts, borderColor: c, backgroundColor: c, borderWidth: 2, tension: 0, spanGaps: true,
      pointStyle: SHAPES[r.i % 8], pointRadius: pts.length <= 16 ? 3 : 0, pointHoverRadius: 4, pointHitRadius: 8, borderDash: r.i >= 8 ? DASH.dashed : DASH.solid}, extra || {});
  }
  function guide(name, pts, dash) {
    return {label: name, data: pts, borderColor: css('--dim'), backgroundColor: css('--dim'), borderWidth: 1, borderDash: dash || DASH.dotted, pointRadius: 0, pointHitRadius: 0, guide: true};
  }
  function axis(title, extra) {
    return Object.assign({type: 'linear', title: {display: true, text: title, color: css('--dim')}, grid: {color: css('--line'), drawBorder: false},
      ticks: {color: css('--dim'), maxTicksLimit: 7, callback: tick}}, extra || {});
  }
  function config(datasets, x, y, extra) {
    return Object.assign({type: 'line', data: {datasets: datasets}, options: {scales: {x: x, y: y}}}, extra || {});
  }
  /* Limits a little beyond the values. */
  function around(values) {
    var lo = Math.min.apply(null, values), hi = Math.max.apply(null, values), pad = Math.max((hi - lo) * 0.2, Math.abs(hi) * 0.02, 1e-6);
    return {suggestedMin: lo < 0 ? lo - pad : Math.max(0, lo - pad), suggestedMax: hi + pad}; /* what is never negative begins at 0 */
  }
  /* A box for one plot. build() gives a configuration, or null when there is nothing to draw for the runs that are shown. */
  function figure(id, title, build, kind, key) {
    var canvas = make('canvas', {role: 'img', 'aria-label': title});
    var caption = make('figcaption', {}, [title]);
    var box = make('figure', {'class': 'plot ' + (kind || '')}, [caption, make('div', {'class': 'box'}, [canvas])]);
    if (key) box.appendChild(keys(key));
    document.querySelector('#' + id + ' .plots').appendChild(box);
    var f = {id: id, canvas: canvas, box: box, caption: caption, build: build, chart: null, stale: true};
    figures.push(f);
    return f;
  }
  /* What line styles mean. */
  function keys(list) {
    return make('ul', {'class': 'key'}, list.map(function (k) {
      var ns = 'http://www.w3.org/2000/svg', svg = document.createElementNS(ns, 'svg'), l = document.createElementNS(ns, 'line');
      svg.setAttribute('width', '26'); svg.setAttribute('height', '8'); svg.setAttribute('aria-hidden', 'true');
      [['x1', 0], ['x2', 26], ['y1', 4], ['y2', 4], ['stroke', 'currentColor'], ['stroke-width', k[2] || 2], ['stroke-dasharray', DASH[k[1]].join(' ')]].forEach(function (a) { l.setAttribute(a[0], a[1]); });
      svg.appendChild(l);
      return make('li', {}, [svg, k[0]]);
    }));
  }
  /* What goes wrong in one place must not take the rest of the page with it. */
  function guarded(fn, arg) {
    try { return fn(arg); } catch (e) { errors.push(String(e)); console.error(e); return null; }
  }
  function draw(f) {
    f.stale = false;
    var c = guarded(f.build);
    if (f.chart) f.chart.destroy();
    f.chart = null;
    f.box.hidden = !c || !c.data.datasets.some(function (d) { return !d.guide; });
    if (f.box.hidden) return;
    c.options = c.options || {};
    c.options.plugins = Object.assign({tooltip: {callbacks: {
      title: function (items) { var s = items[0] && items[0].chart.options.scales.x; return items[0] ? (s && s.title && s.type !== 'category' ? s.title.text + ' ' + text(items[0].parsed.x) : items[0].label) : ''; },
      label: function (item) { return item.dataset.tip ? item.dataset.tip(item) : item.dataset.label + ': ' + text(item.parsed.y); }
    }}}, c.options.plugins || {});
    f.chart = new Chart(f.canvas, c);
  }
  /* What is on the screen is drawn first, the rest a few at a time, so that the page answers meanwhile. */
  var pumping = false;
  function distance(f) {
    var r = f.box.getBoundingClientRect();
    return r.bottom < 0 ? -r.bottom : Math.max(0, r.top - window.innerHeight);
  }
  function pump() {
    var start = performance.now(), due = figures.filter(function (f) { return f.stale; });
    due.sort(function (a, b) { return distance(a) - distance(b); });
    while (due.length && performance.now() - start < 30) draw(due.shift());
    pumping = due.length > 0;
    if (pumping) setTimeout(pump, 0);
  }
  function refresh(id) {
    figures.forEach(function (f) { if (!id || f.id === id) { f.stale = true; f.box.hidden = false; } });
    if (!pumping) pump();
  }

  function defaults() {
    var d = Chart.defaults;
    d.font.family = getComputedStyle(document.body).fontFamily;
    d.font.size = 12;
    d.color = css('--dim');
    d.borderColor = css('--line');
    d.animation = false;
    d.responsive = true;
    d.maintainAspectRatio = false;
    d.interaction = {mode: 'nearest', axis: 'x', intersect: false};
    d.plugins.legend.display = false;
    d.plugins.tooltip.backgroundColor = css('--ink');
    d.plugins.tooltip.titleColor = css('--bg');
    d.plugins.tooltip.bodyColor = css('--bg');
    d.plugins.tooltip.cornerRadius = 4;
    d.plugins.tooltip.boxPadding = 4;
    d.plugins.tooltip.filter = function (item) { return !item.dataset.silent; };
  }

  /* ---- choices of a section ---- */
  var choices = {};
  function choose(id, name, options, change, above) {
    options = options.map(function (o) { return Array.isArray(o) ? o : [o, label(o)]; });
    choices[id] = choices[id] || {};
    choices[id][name] = options.length ? options[0][0] : undefined;
    if (options.length < 2) return;
    var plots = document.querySelector('#' + id + ' .plots'), bar = plots.querySelector('.controls');
    if (above) above.parentNode.insertBefore(bar = make('div', {'class': 'controls'}), above);
    else if (!bar) plots.appendChild(bar = make('div', {'class': 'controls'}));
    var group = make('div', {'class': 'choice', role: 'group', 'aria-label': name}, [make('span', {}, [name])]);
    options.forEach(function (o) {
      var b = make('button', {type: 'button', 'aria-pressed': String(o[0] === choices[id][name])}, [o[1]]);
      b.addEventListener('click', function () {
        choices[id][name] = o[0];
        group.querySelectorAll('button').forEach(function (x) { x.setAttribute('aria-pressed', String(x === b)); });
        (change || refresh)(id);
      });
      group.appendChild(b);
    });
    bar.appendChild(group);
  }
  function unitSquare() { return [{x: 0, y: 0}, {x: 1, y: 1}]; }
  function foreignName(key) { return key.replace(/^ood:/, ''); }

  /* ---- sections: one function each, named like the section ---- */
  var sections = {};

  sections.cost = function (id) {
    var ys = Object.keys(METRICS).filter(function (k) { return METRICS[k].better && runs.some(function (r) { return isNumber(get(r.sets, ['test', k])); }); });
    var xs = ['flops', 'parameters', 'training_seconds', 'infer_seconds'].filter(function (k) { return runs.some(function (r) { return isNumber(r.evaluation[k]) && r.evaluation[k] > 0; }); });
    if (!ys.length || !xs.length) return;
    choose(id, 'quality', ys);
    choose(id, 'cost', xs);
    /* Names beside their points: right, left, above or below, wherever nothing is in the way. */
    var names = {id: 'names', afterDatasetsDraw: function (chart) {
      var ctx = chart.ctx, area = chart.chartArea, taken = [];
      var clash = function (b) { return taken.some(function (t) { return b.x < t.x + t.w && t.x < b.x + b.w && b.y < t.y + t.h && t.y < b.y + b.h; }); };
      var marks = chart.data.datasets.map(function (d, i) { return chart.getDatasetMeta(i).data[0]; });
      marks.forEach(function (p) { if (p) taken.push({x: p.x - 7, y: p.y - 7, w: 14, h: 14}); });
      ctx.save();
      ctx.font = '12px ' + Chart.defaults.font.family;
      ctx.fillStyle = css('--ink');
      ctx.textBaseline = 'middle';
      marks.forEach(function (p, i) {
        if (!p) return;
        var w = ctx.measureText(chart.data.datasets[i].label).width, h = 14;
        var places = [[p.x + 10, p.y - 7], [p.x - 10 - w, p.y - 7], [p.x - w / 2, p.y - 23], [p.x - w / 2, p.y + 9]].map(function (q) { return {x: q[0], y: q[1], w: w, h: h}; });
        var inside = places.filter(function (b) { return b.x >= area.left && b.x + w <= area.right && b.y >= area.top && b.y + h <= area.bottom; });
        var box = inside.filter(function (b) { return !clash(b); })[0] || inside[0] || places[0];
        taken.push(box);
        ctx.fillText(chart.data.datasets[i].label, box.x, box.y + h / 2);
      });
      ctx.restore();
    }};
    /* Intervals of the quality, as bars with ends. */
    var bars = {id: 'bars', beforeDatasetsDraw: function (chart) {
      var ctx = chart.ctx, scale = chart.scales.y;
      ctx.save();
      ctx.lineWidth = 1.5;
      chart.data.datasets.forEach(function (d, i) {
        var p = chart.getDatasetMeta(i).data[0];
        if (!p || !d.band) return;
        var lo = scale.getPixelForValue(d.band[0]), hi = scale.getPixelForValue(d.band[1]);
        ctx.strokeStyle = d.borderColor;
        ctx.beginPath();
        [[p.x, lo, p.x, hi], [p.x - 5, lo, p.x + 5, lo], [p.x - 5, hi, p.x + 5, hi]].forEach(function (l) { ctx.moveTo(l[0], l[1]); ctx.lineTo(l[2], l[3]); });
        ctx.stroke();
      });
      ctx.restore();
    }};
    figure(id, 'Test set; bars are 95 % intervals', function () {
      var y = choices[id].quality, x = choices[id].cost;
      var has = function (r) { return isNumber(get(r.sets, ['test', y])) && r.evaluation[x] > 0; };
      return {type: 'scatter', plugins: [bars, names], data: {datasets: shown(has).map(function (r) {
        var band = get(r.sets, ['test', 'interval', y]);
        return line(r, [{x: r.evaluation[x], y: r.sets.test[y]}], {pointRadius: 6, pointHoverRadius: 7, showLine: false, band: Array.isArray(band) && some(band) ? band : null, tip: function () {
          return r.name + ': ' + label(y) + ' ' + text(r.sets.test[y]) + (band ? ' (' + text(band[0]) + ' to ' + text(band[1]) + ')' : '') + ', ' + label(x) + ' ' + text(r.evaluation[x]);
        }});
      })}, options: {scales: {x: axis(label(x), {type: 'logarithmic', grace: '10%', ticks: {color: css('--dim'), maxRotation: 0, autoSkipPadding: 12, callback: function (v) { return /^[125]/.test(v.toExponential()) ? tick(v) : ''; }}}), y: axis(label(y), around([].concat.apply([], shown(has).map(function (r) { return [r.sets.test[y]].concat((get(r.sets, ['test', 'interval', y]) || []).filter(isNumber)); }))))},
        interaction: {mode: 'nearest', axis: 'xy', intersect: true}, plugins: {tooltip: {callbacks: {title: function () { return ''; }, label: function (i) { return i.dataset.tip(i); }}}}}};
    }, 'wide');
  };

  sections.uncertainty = function (id) {
    var sets = ['test'].concat(unique([].concat.apply([], runs.map(function (r) { return Object.keys(r.sets).filter(function (k) { return /^ood:/.test(k); }); }))));
    /* total, data and knowledge of either task */
    [{title: 'Mean entropy', unit: 'nats', total: 'entropy', data: 'expected_entropy', knowledge: 'mutual_information'},
     {title: 'Mean variance', unit: 'squared units of the target', total: 'total_variance', data: 'data_variance', knowledge: 'knowledge_variance'}].forEach(function (t) {
      var has = function (r) { return sets.some(function (s) { return isNumber(get(r.sets, [s, t.total])); }); };
      if (!runs.some(has)) return;
      figure(id, t.title + ' by data set: data uncertainty (full) and knowledge uncertainty (pale)', function () {
        var out = [], with_ = sets.filter(function (s) { return shown(has).some(function (r) { return isNumber(get(r.sets, [s, t.total])); }); });
        shown(has).forEach(function (r) {
          var knows = function (s) { return isNumber(get(r.sets, [s, t.knowledge])); };
          out.push({label: r.name + ', data', stack: r.name, maxBarThickness: 56, backgroundColor: colour(r), data: with_.map(function (s) { var v = r.sets[s] || {}; return knows(s) ? v[t.data] : isNumber(v[t.total]) ? v[t.total] : null; })});
          out.push({label: r.name + ', knowledge', stack: r.name, maxBarThickness: 56, backgroundColor: fade(colour(r), .35), data: with_.map(function (s) { return knows(s) ? r.sets[s][t.knowledge] : null; })});
        });
        return {type: 'bar', data: {labels: with_.map(foreignName), datasets: out}, options: {interaction: {mode: 'nearest', axis: 'xy', intersect: true}, scales: {
          x: {type: 'category', stacked: true, grid: {display: false}, ticks: {color: css('--dim')}}, y: axis(t.unit, {stacked: true, beginAtZero: true})}}};
      }, 'wide low');
    });
  };

  sections.reliability = function (id) {
    var has = function (r) { var c = r.curves.reliability; return c && some(c.accuracy) && some(c.confidence) && some(c.count); };
    figure(id, 'Accuracy at a given confidence', function () {
      return config(shown(has).map(function (r) {
        var c = r.curves.reliability, known = c.count.filter(function (n, i) { return isNumber(c.confidence[i]); }), most = Math.max.apply(null, known);
        return line(r, points(c.confidence, c.accuracy), {pointRadius: known.map(function (n) { return 1.5 + 3.5 * Math.sqrt(n / most); }), tip: function (item) { return r.name + ': ' + text(item.parsed.y) + ' (' + known[item.dataIndex] + ' rows)'; }});
      }).concat([guide('perfect', unitSquare())]),
        axis('confidence', {min: 0, max: 1}), axis('accuracy', {min: 0, max: 1}));
    });
    figure(id, 'Fraction of predictions in each bin', function () {
      var first = shown(has)[0], n = first ? first.curves.reliability.count.length : 0, labels = [];
      for (var i = 0; i < n; i++) labels.push((i / n).toFixed(2) + ' to ' + ((i + 1) / n).toFixed(2));
      return {type: 'bar', data: {labels: labels, datasets: shown(has).map(function (r) {
        var counts = r.curves.reliability.count, total = counts.reduce(function (a, b) { return a + b; }, 0);
        return {label: r.name, backgroundColor: colour(r), data: counts.map(function (c) { return total ? c / total : 0; }), tip: function (item) { return r.name + ': ' + counts[item.dataIndex] + ' rows, ' + text(item.parsed.y); }};
      })}, options: {interaction: {mode: 'index', intersect: false}, scales: {x: {type: 'category', grid: {display: false}, title: {display: true, text: 'confidence', color: css('--dim')}, ticks: {color: css('--dim'), maxTicksLimit: 5, maxRotation: 0,
        callback: function (v, i) { return (i / n).toFixed(1); }}}, y: axis('fraction of rows', {beginAtZero: true})}}};
    });
  };

  sections.intervals = function (id) {
    figure(id, 'Coverage of central intervals', function () {
      return config(shown(function (r) { return r.curves.intervals; }).map(function (r) { var c = r.curves.intervals; return line(r, points(c.level, c.coverage)); }).concat([guide('perfect', unitSquare())]),
        axis('level', {min: 0, max: 1}), axis('fraction of targets inside', {min: 0, max: 1}));
    });
  };

  function steps(edges, counts, floor) {
    var total = counts.reduce(function (a, b) { return a + (b || 0); }, 0) || 1;
    var out = counts.map(function (c, i) { return {x: edges[i], y: Math.max((c || 0) / total, floor)}; });
    out.push({x: edges[edges.length - 1], y: out[out.length - 1].y});
    return out;
  }
  sections.histograms = function (id) {
    var kinds = unique([].concat.apply([], runs.map(function (r) { return Object.keys(r.curves.histogram || {}); })));
    var foreign = unique([].concat.apply([], runs.map(function (r) {
      return [].concat.apply([], kinds.map(function (k) { return Object.keys(get(r.curves, ['histogram', k]) || {}).filter(function (s) { return /^ood:/.test(s); }); })); })));
    var rank = function (k) { return MEASURES.indexOf(k) + (CERTAINTIES.indexOf(k) < 0 ? 0 : MEASURES.length); };
    kinds.sort(function (a, b) { return rank(a) - rank(b); });
    var name = function (k) { return (CERTAINTIES.indexOf(k) < 0 ? '' : '1 - ') + label(k); };
    choose(id, 'measure', kinds.map(function (k) { return [k, name(k)]; }));
    choose(id, 'against', foreign.map(function (s) { return [s, foreignName(s)]; }));
    choose(id, 'scale', ['linear', 'logarithmic']);
    runs.forEach(function (r) {
      if (!r.curves.histogram) return;
      figure(id, r.name, function () {
        var h = r.curves.histogram[choices[id].measure], set = choices[id].against, log = choices[id].scale === 'logarithmic';
        if (!h || !r.shown || !some(h.test)) return null;
        var floor = log ? 1e-4 : 0, list = [], c = colour(r);
        var common = {stepped: 'before', pointRadius: 0, pointHitRadius: 6, borderWidth: 1.5};
        if (set && some(h[set])) list.push(Object.assign({label: foreignName(set), data: steps(h.edges, h[set], floor), borderColor: css('--ink'), backgroundColor: fade(css('--ink'), .08), fill: 'start'}, common));
        if (some(h.test_wrong)) list.push(Object.assign({label: 'test, wrong', data: steps(h.edges, h.test_wrong, floor), borderColor: c, borderDash: DASH.dashed, fill: false, backgroundColor: c}, common));
        list.push(Object.assign({label: 'test', data: steps(h.edges, h.test, floor), borderColor: c, backgroundColor: fade(c, .35), fill: 'start'}, common));
        return config(list, axis(name(choices[id].measure), {min: h.edges[0], max: h.edges[h.edges.length - 1], ticks: {includeBounds: false, maxTicksLimit: 6, color: css('--dim'), callback: tick}}),
          axis('fraction of rows', log ? {type: 'logarithmic', min: 1e-4, max: 1, ticks: {color: css('--dim'), callback: function (v) { return /^1e/.test(v.toExponential()) ? tick(v) : ''; }}} : {beginAtZero: true}), {});
      });
    });
  };

  sections.rejection = function (id) {
    var has = function (r) { return r.curves.rejection; };
    var known = MEASURES.filter(function (m) { return runs.some(function (r) { return has(r) && some(r.curves.rejection[m]); }); });
    choose(id, 'measure', known);
    figure(id, 'All runs', function () {
      var m = choices[id].measure, list = shown(has).filter(function (r) { return some(r.curves.rejection[m]); }), out = [];
      list.forEach(function (r) { out.push(line(r, points(r.curves.rejection.fraction, r.curves.rejection[m]))); });
      list.forEach(function (r) {
        ['random', 'oracle'].forEach(function (k) { out.push(line(r, points(r.curves.rejection.fraction, r.curves.rejection[k]), {label: r.name + ', ' + k, borderWidth: 1, borderDash: DASH.dotted, guide: true, silent: true})); });
      });
      return config(out, axis('fraction rejected', {min: 0, max: 1}), axis('remaining errors / all rows', {beginAtZero: true}));
    }, '', [['by the chosen measure', 'solid'], ['random order, and oracle', 'dotted', 1]]);
    var usual = known.filter(function (m) { return CERTAINTIES.indexOf(m) >= 0 || get(METRICS, [m, 'usual']); });
    runs.filter(has).forEach(function (r) {
      figure(id, r.name, function () {
        var c = r.curves.rejection, styles = [DASH.solid, DASH.dashed, DASH.dotted];
        if (!r.shown) return null;
        return config(usual.filter(function (m) { return some(c[m]); }).map(function (m, i) { return line(r, points(c.fraction, c[m]), {label: label(m), borderDash: styles[i]}); })
          .concat([guide('random', points(c.fraction, c.random)), guide('oracle', points(c.fraction, c.oracle))]), axis('fraction rejected', {min: 0, max: 1}), axis('remaining errors / all rows', {beginAtZero: true}));
      }, '', usual.filter(function (m) { return some(r.curves.rejection[m]); }).map(function (m, i) { return [label(m), ['solid', 'dashed', 'dotted'][i]]; }));
    });
  };

  sections.roc = function (id) {
    var tasks = unique([].concat.apply([], runs.map(function (r) { return Object.keys(r.curves.roc || {}); })));
    var known = MEASURES.filter(function (m) { return runs.some(function (r) { return tasks.some(function (t) { return get(r.curves, ['roc', t, m]); }); }); });
    choose(id, 'measure', known);
    tasks.forEach(function (t) {
      figure(id, t === 'misclassification' ? 'Errors on the test set' : 'Test set against ' + foreignName(t), function () {
        var m = choices[id].measure;
        return config(shown(function (r) { return get(r.curves, ['roc', t, m]); }).map(function (r) {
          var c = r.curves.roc[t][m], area = t === 'misclassification' ? get(r.sets, ['test', 'misclassification', 'auroc', m]) : get(r.sets, [t, 'auroc', m]);
          return line(r, points(c.fpr, c.tpr), {pointRadius: 0, label: r.name + (isNumber(area) ? ' (AUROC ' + text(area) + ')' : '')});
        }).concat([guide('chance', unitSquare())]), axis('false positive rate', {min: 0, max: 1}), axis('true positive rate', {min: 0, max: 1}));
      });
    });
  };

  sections.shift = function (id) {
    var kinds = unique([].concat.apply([], runs.map(function (r) { return Object.keys(r.sets).filter(function (k) { return /^shift:/.test(k) || (k === 'corrupt' && r.sets.corrupt.severity); }); })));
    var table = function (r, kind) { return kind === 'corrupt' ? get(r.sets, ['corrupt', 'severity']) : r.sets[kind]; };
    choose(id, 'shift', kinds.map(function (k) { return [k, k === 'corrupt' ? 'corruptions' : k.replace(/^shift:/, '')]; }));
    Object.keys(METRICS).forEach(function (m) {
      if (!METRICS[m].followed || !runs.some(function (r) { return kinds.some(function (k) { return some(get(table(r, k), [m])); }); })) return;
      figure(id, label(m), function () {
        var kind = choices[id].shift, here = shown(function (r) { return some(get(table(r, kind), [m])); });
        var unit = here.map(function (r) { return table(r, kind).unit; }).filter(Boolean)[0];
        return config(here.map(function (r) {
          var t = table(r, kind), pts = points(t.severity, t[m]), clean = get(r.sets, ['test', m]);
          if (isNumber(clean) && pts.length && pts[0].x > 0) pts.unshift({x: 0, y: clean});
          return line(r, pts);
        }), axis(kind === 'corrupt' ? 'severity' : kind.replace(/^shift:/, '') + (unit ? ', ' + unit : '')), axis(label(m), METRICS[m].better > 0 ? {max: 1} : {}));
      });
    });
  };

  sections.corruptions = sections.classes = function (id) {
    var tabs = Array.prototype.slice.call(document.querySelectorAll('#' + id + ' .tab'));
    var pick = function () { tabs.forEach(function (t) { t.hidden = t.dataset.tab !== choices[id].metric; }); };
    choose(id, 'metric', tabs.map(function (t) { return t.dataset.tab; }), pick, tabs[0]);
    pick();
  };

  sections.line = function (id) {
    [['loss', 'Loss'], ['accuracy', 'Accuracy']].forEach(function (m) {
      if (!runs.some(function (r) { return some(get(r.curves, ['line', m[0]])); })) return;
      figure(id, m[1], function () {
        return config(shown(function (r) { return some(get(r.curves, ['line', m[0]])); }).map(function (r) { return line(r, points(r.curves.line.alpha, r.curves.line[m[0]])); }),
          axis('weight of the second member', {}), axis(m[1].toLowerCase(), {}));
      });
    });
  };

  function column(r, key) { return points(r.log.epoch, r.log[key]); }
  sections.diversity = function (id) {
    var pair = function (suffix, title) {
      var s = 'student_diversity' + suffix, t = 'teacher_diversity' + suffix, has = function (r) { return some(r.log[s]) || some(r.log[t]); };
      if (!runs.some(has)) return;
      figure(id, title, function () {
        var out = [];
        shown(has).forEach(function (r) {
          if (some(r.log[s])) out.push(line(r, column(r, s), {label: r.name}));
          if (some(r.log[t])) out.push(line(r, column(r, t), {label: r.name + ', teacher', borderDash: DASH.dashed, pointRadius: 0}));
          if (suffix && some(r.log.student_diversity)) out.push(line(r, column(r, 'student_diversity'), {label: r.name + ', without perturbation', borderDash: DASH.dotted, borderWidth: 1, pointRadius: 0}));
          if (suffix && some(r.log.teacher_diversity)) out.push(line(r, column(r, 'teacher_diversity'), {label: r.name + ', teacher, without perturbation', borderDash: DASH.dotted, borderWidth: 1, pointRadius: 0}));
        });
        return config(out, axis('epoch', {ticks: {precision: 0, maxTicksLimit: 7, color: css('--dim')}}), axis('pairwise KL, nats', {beginAtZero: true}));
      }, '', [['student', 'solid'], ['teacher', 'dashed']].concat(suffix ? [['the same without perturbation', 'dotted', 1]] : []));
    };
    pair('', 'On inputs as they are');
    pair('_perturbed', 'On perturbed inputs');
  };

  sections.average = function (id) {
    runs.filter(function (r) { return r.average; }).forEach(function (r) {
      var layers = r.average.layers || [], inter = r.average.interpolation;
      var bars = function (title, unit, parts) {
        if (!layers.some(function (l) { return parts.some(function (p) { return [].concat(l[p[0]]).some(function (v) { return isNumber(v) && v !== 0; }); }); })) return;
        figure(id, r.name + ': ' + title, function () {
          if (!r.shown) return null;
          return {type: 'bar', data: {labels: layers.map(function (l) { return String(l.name); }), datasets: parts.map(function (p) {
            return {label: p[1], maxBarThickness: 56, backgroundColor: fade(colour(r), p[2]), data: layers.map(function (l) {
              var v = l[p[0]];
              return some(v) ? v.filter(isNumber).reduce(function (a, b) { return a + b; }, 0) / v.filter(isNumber).length : isNumber(v) ? v : null;
            })};
          })}, options: {interaction: {mode: 'index', intersect: false}, scales: {x: {type: 'category', grid: {display: false}, ticks: {color: css('--dim')}}, y: axis(unit, {beginAtZero: true})}}};
        });
      };
      if (inter) ['loss', 'accuracy'].forEach(function (m) {
        if (!some(get(inter, ['naive', m])) && !some(get(inter, ['permuted', m]))) return;
        figure(id, r.name + ': ' + m + ' between models', function () {
          if (!r.shown) return null;
          var out = [];
          if (some(get(inter, ['permuted', m]))) out.push(line(r, points(inter.alpha, inter.permuted[m]), {label: 'permuted'}));
          if (some(get(inter, ['naive', m]))) out.push(line(r, points(inter.alpha, inter.naive[m]), {label: 'as they were', borderDash: DASH.dashed, pointRadius: 0}));
          return config(out, axis('weight of the second model'), axis(m));
        }, '', [['permuted', 'solid'], ['as they were', 'dashed']]);
      });
      bars('distance of weights before (pale) and after', 'distance', [['distance_before', 'before', .35], ['distance_after', 'after', 1]]);
      bars('correlation of weights before (pale) and after', 'correlation', [['correlation_before', 'before', .35], ['correlation_after', 'after', 1]]);
      bars('row entropy of permutations', 'nats', [['row_entropy', 'row entropy', 1]]);
    });
  };

  sections.training = function (id) {
    [['Validation loss', 'valid_loss', 'loss', {}], ['Validation accuracy', 'valid_accuracy', 'accuracy', {}], ['Training loss', 'train_loss', 'loss', {}],
     ['Training accuracy', 'train_accuracy', 'accuracy', {}], ['Learning rate', 'lr', 'learning rate', {beginAtZero: true}], ['Temperature', 'temperature', 'temperature', {beginAtZero: true}]].forEach(function (f) {
      if (!runs.some(function (r) { return some(r.log[f[1]]); })) return;
      figure(id, f[0], function () {
        return config(shown(function (r) { return some(r.log[f[1]]); }).map(function (r) { var pts = column(r, f[1]); return line(r, pts, {pointRadius: pts.length === 1 ? 3 : 0}); }), axis('epoch', {ticks: {precision: 0, maxTicksLimit: 7, color: css('--dim')}}), axis(f[2], f[3]));
      });
    });
  };

  /* ---- tables ---- */
  function sortable(table) {
    var heads = Array.prototype.slice.call(table.tHead.rows[0].cells), body = table.tBodies[0];
    var original = Array.prototype.slice.call(body.rows);
    table.classList.add('live');
    heads.forEach(function (th, i) {
      var sort = function () {
        var now = th.getAttribute('aria-sort'), first = Number(th.dataset.direction) > 0 ? 'descending' : 'ascending';
        var next = !now ? first : now === first ? (first === 'ascending' ? 'descending' : 'ascending') : null;
        heads.forEach(function (h) { h.removeAttribute('aria-sort'); });
        var rows = original.slice();
        if (next) {
          th.setAttribute('aria-sort', next);
          var key = function (row) { var c = row.cells[i]; return c.dataset.v !== undefined ? Number(c.dataset.v) : c.tagName === 'TH' ? c.textContent : null; };
          rows.sort(function (a, b) {
            var x = key(a), y = key(b);
            if (x === null || y === null) return (x === null) - (y === null);
            return (x < y ? -1 : x > y ? 1 : 0) * (next === 'ascending' ? 1 : -1);
          });
        }
        rows.forEach(function (row) { body.appendChild(row); });
      };
      th.tabIndex = 0;
      th.addEventListener('click', sort);
      th.addEventListener('keydown', function (e) { if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); sort(); } });
    });
  }

  /* Tables wider than the page say so, and a click goes on. */
  function further(box) {
    var caption = box.querySelector('caption'), go = make('button', {type: 'button', 'class': 'further'}, ['']);
    if (!caption) return;
    caption.appendChild(go);
    var look = function () {
      var hidden = box.scrollWidth <= box.clientWidth + 1 ? 0 : Array.prototype.filter.call(box.querySelectorAll('thead th'), function (th) { return th.offsetLeft + th.offsetWidth > box.scrollLeft + box.clientWidth + 1; }).length;
      box.classList.toggle('more', hidden > 0);
      go.textContent = hidden + (hidden === 1 ? ' more column \u2192' : ' more columns \u2192');
    };
    go.addEventListener('click', function () { box.scrollBy({left: box.clientWidth * 0.7, behavior: 'smooth'}); });
    box.addEventListener('scroll', look, {passive: true});
    if (window.ResizeObserver) new ResizeObserver(look).observe(box); /* a window of another width, a tab that opens */
    look();
  }

  /* ---- theme, runs shown, navigation, printing ---- */
  var button = document.getElementById('theme');
  function isDark() { return root.dataset.theme ? root.dataset.theme === 'dark' : window.matchMedia('(prefers-color-scheme: dark)').matches; }
  function themed() {
    button.textContent = isDark() ? 'Light' : 'Dark';
    defaults();
    refresh();
  }
  function keep(theme) { try { localStorage.setItem('retort-theme', theme); } catch (e) { /* a page from a file may have no storage */ } }
  function kept() { try { return localStorage.getItem('retort-theme'); } catch (e) { return null; } }
  button.addEventListener('click', function () {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    keep(root.dataset.theme);
    themed();
  });
  document.querySelectorAll('.chip').forEach(function (chip) {
    chip.addEventListener('click', function () {
      var r = runs[Number(chip.dataset.run)];
      r.shown = !r.shown;
      chip.setAttribute('aria-pressed', String(r.shown));
      document.querySelectorAll('tr[data-run="' + r.i + '"]').forEach(function (tr) { tr.classList.toggle('off', !r.shown); });
      refresh();
    });
  });
  var before = null;
  window.addEventListener('beforeprint', function () {
    before = root.dataset.theme || '';
    root.dataset.theme = 'light';
    defaults();
    figures.forEach(draw);
  });
  window.addEventListener('afterprint', function () {
    if (before) root.dataset.theme = before; else delete root.dataset.theme;
    themed();
  });
  var links = Array.prototype.slice.call(document.querySelectorAll('.side nav a')), due = false;
  function spy() {
    due = false;
    var at = links[0];
    links.forEach(function (a) { if (document.querySelector(a.getAttribute('href')).getBoundingClientRect().top < 180) at = a; });
    links.forEach(function (a) {
      if (a === at && !a.classList.contains('here') && a.parentNode.scrollWidth > a.parentNode.clientWidth) a.parentNode.scrollLeft = a.offsetLeft - 16;
      a.classList.toggle('here', a === at);
    });
  }
  window.addEventListener('scroll', function () { if (!due) { due = true; requestAnimationFrame(spy); } }, {passive: true});

  /* ---- the page checks itself ---- */
  function blank(canvas) {
    var p = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data, seen = 0;
    for (var i = 3; i < p.length; i += 4) if (p[i]) seen++;
    return seen < 200;
  }
  function tooltip(chart) {
    var set = chart.data.datasets.findIndex(function (d) { return !d.silent && d.data.some(function (v) { return v !== null; }); });
    var index = chart.data.datasets[set].data.findIndex(function (v) { return v !== null && v.y !== null; });
    chart.tooltip.setActiveElements([{datasetIndex: set, index: index}], {x: 0, y: 0});
    var lines = chart.tooltip.body && chart.tooltip.body.length ? chart.tooltip.body[0].lines : [];
    chart.tooltip.setActiveElements([], {x: 0, y: 0});
    return lines.length > 0 && !/undefined|NaN|null/.test(lines.join(' '));
  }
  /* Keys may hold slashes: the key is looked for in the path, as the writer of the page does. */
  function at(v, path) {
    if (path === '') return v;
    var keys = v && typeof v === 'object' ? Object.keys(v) : [];
    for (var i = 0; i < keys.length; i++)
      if (path === keys[i] || path.indexOf(keys[i] + '/') === 0) {
        var hit = at(v[keys[i]], path.slice(keys[i].length + 1));
        if (hit !== undefined && hit !== null) return hit;
      }
    return undefined;
  }
  function selftest() {
    var bad = [], cells = 0, plots = 0;
    figures.forEach(draw);
    figures.forEach(function (f) {
      if (f.box.hidden) return;
      plots++;
      if (blank(f.canvas)) bad.push('blank plot: ' + f.id + ' ' + f.caption.textContent);
      if (!tooltip(f.chart)) bad.push('no tooltip: ' + f.id + ' ' + f.caption.textContent);
    });
    document.querySelectorAll('td[data-path]').forEach(function (td) {
      cells++;
      var v = at(runs[Number(td.dataset.run)].metrics, td.dataset.path);
      if (v !== Number(td.dataset.v)) bad.push('cell ' + td.dataset.path + ' is ' + td.dataset.v + ', not ' + v);
    });
    document.querySelectorAll('table.sortable').forEach(function (t) {
      var th = t.tHead.rows[0].cells[t.tHead.rows[0].cells.length - 1], n = t.tBodies[0].rows.length, last = -Infinity;
      th.dataset.direction = '-1';
      th.click();
      Array.prototype.forEach.call(t.tBodies[0].rows, function (row) {
        var v = row.cells[row.cells.length - 1].dataset.v;
        if (v !== undefined && Number(v) < last) bad.push('table is not sorted: ' + t.caption.textContent);
        if (v !== undefined) last = Number(v);
      });
      if (t.tBodies[0].rows.length !== n) bad.push('sorting lost rows');
      th.click();
      th.click();
    });
    document.querySelectorAll('.scroll').forEach(function (box) {
      var go = box.querySelector('.further');
      if (box.offsetWidth && box.scrollWidth > box.clientWidth + 1 && !(go && go.offsetWidth)) bad.push('columns are hidden without a word: ' + box.getAttribute('aria-label'));
    });
    links.forEach(function (a) { if (!document.querySelector(a.getAttribute('href'))) bad.push('dead link ' + a.getAttribute('href')); });
    if (root.scrollWidth > root.clientWidth) {
      bad.push('the page is ' + root.scrollWidth + ' wide in a window of ' + root.clientWidth);
      document.querySelectorAll('main *').forEach(function (e) { if (!e.closest('.scroll') && e.getBoundingClientRect().right > root.clientWidth + 1 && bad.length < 20) bad.push('overflow: ' + e.tagName + '.' + e.className); });
    }
    bad = bad.concat(errors);
    document.body.appendChild(make('pre', {id: 'selftest', hidden: ''}, [bad.length ? 'selftest failed: ' + bad.join('; ') : 'selftest ok: ' + plots + ' plots, ' + cells + ' cells, width ' + root.clientWidth]));
  }

  var words = location.hash.slice(1).split(',');
  if (kept() === 'dark' || kept() === 'light') root.dataset.theme = kept();
  if (words.indexOf('dark') >= 0) root.dataset.theme = 'dark';
  if (words.indexOf('light') >= 0) root.dataset.theme = 'light';
  button.textContent = isDark() ? 'Light' : 'Dark';
  defaults();
  Object.keys(sections).forEach(function (id) { if (document.getElementById(id)) guarded(sections[id], id); });
  pump();
  document.querySelectorAll('table.sortable').forEach(sortable);
  document.querySelectorAll('.scroll').forEach(further);
  var prefers = window.matchMedia('(prefers-color-scheme: dark)');
  if (prefers.addEventListener) prefers.addEventListener('change', themed);
  spy();
  if (words.indexOf('selftest') >= 0) selftest();
})();
