// An interactive view of two orbits about TCA over the Earth, drawn from CZML on a canvas, without any other file.
(function () {
  "use strict";
  const data = (id) => JSON.parse(document.getElementById(id).textContent);
  const packets = data("czml"), around = data("surroundings"), coasts = data("coasts");
  const canvas = document.getElementById("orbits"), pen = canvas.getContext("2d");
  const slider = document.getElementById("time"), shown = document.getElementById("when");
  const EARTH_M = 6378137, EARTH_RAD_S = 7.2921159e-5, RAD = Math.PI / 180, FULL = 2 * Math.PI;
  const tca = Date.parse(packets[0].clock.currentTime);
  const objects = packets.slice(1).map((packet, number) => {
    const flat = packet.position.cartesian, samples = [];
    for (let i = 0; i < flat.length; i += 4) samples.push(flat.slice(i, i + 4));
    const colour = `rgb(${packet.point.color.rgba.slice(0, 3)})`;
    return { name: packet.name, colour, samples, axes: around.ellipsoids[number] };
  });
  const half = objects[0].samples[objects[0].samples.length - 1][0];
  let yaw = 0.6, pitch = 0.5, reach = 0, centred = false, playing = false, unit = 1;

  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const sum = (a, b, factor = 1) => a.map((x, i) => x + factor * b[i]);
  function at(samples, t) {
    let high = samples.findIndex((sample) => sample[0] >= t);
    if (high <= 0) high = 1;
    const a = samples[high - 1], b = samples[high], part = (t - a[0]) / (b[0] - a[0]);
    return [1, 2, 3].map((axis) => a[axis] + part * (b[axis] - a[axis]));
  }
  // The slider is finest at TCA, as the samples are.
  const seconds = () => half * Math.sign(slider.value) * Math.abs(slider.value / 1000) ** 3;
  const farthest = () => Math.max(...objects.flatMap((o) => o.samples.map((s) => Math.hypot(s[1], s[2], s[3]))));
  const scale = () => Math.min(canvas.height, canvas.width) / 2.2 / reach;
  // The axes of the picture: right, up, and towards the person who looks.
  function view() {
    const right = [-Math.sin(yaw), Math.cos(yaw), 0], out = [Math.cos(yaw), Math.sin(yaw), 0];
    const up = [-Math.sin(pitch) * out[0], -Math.sin(pitch) * out[1], Math.cos(pitch)];
    return [right, up, [Math.cos(pitch) * out[0], Math.cos(pitch) * out[1], Math.sin(pitch)]];
  }
  function projection(origin) {
    const [right, up] = view(), by = scale();
    return (place) => {
      const from = sum(place, origin, -1);
      return [canvas.width / 2 + by * dot(from, right), canvas.height / 2 - by * dot(from, up)];
    };
  }
  // Pieces of a path that the Earth hides, or those that it does not.
  function pieces(path, isHidden) {
    const [right, up, near] = view(), found = [[]];
    for (const place of path) {
      const isBehind = dot(place, near) < 0 && Math.hypot(dot(place, right), dot(place, up)) < EARTH_M * 0.9999;
      if (isBehind === isHidden) found[found.length - 1].push(place);
      else if (found[found.length - 1].length) found.push([]);
    }
    return found;
  }
  function line(points, colour, width) {
    pen.strokeStyle = colour; pen.lineWidth = width * unit; pen.beginPath();
    points.forEach((p, i) => (i ? pen.lineTo(p[0], p[1]) : pen.moveTo(p[0], p[1])));
    pen.stroke();
  }
  function point(latitude, longitude, turned) {
    const c = Math.cos(latitude * RAD), angle = longitude * RAD + turned;
    return [EARTH_M * c * Math.cos(angle), EARTH_M * c * Math.sin(angle), EARTH_M * Math.sin(latitude * RAD)];
  }
  // Two unit vectors across a direction.
  function ring(direction) {
    const side = Math.abs(direction[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0];
    const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
    const first = cross(direction, side), length = Math.hypot(...first), one = first.map((x) => x / length);
    return { one, two: cross(direction, one) };
  }
  function earth(origin, turned) {
    const to = projection(origin), middle = to([0, 0, 0]), radius = scale() * EARTH_M;
    if (radius > 20 * canvas.width) return;
    pen.fillStyle = "#d7e6f4"; pen.beginPath(); pen.arc(middle[0], middle[1], radius, 0, FULL); pen.fill();
    night(to, middle, radius);
    const grid = "rgba(90,120,150,0.25)", coast = "#3d5a45";
    for (let latitude = -60; latitude <= 60; latitude += 30)
      circle((a) => point(latitude, a, turned), to, grid);
    for (let longitude = 0; longitude < 180; longitude += 30)
      circle((a) => point(a, longitude, turned), to, grid);
    const near = view()[2];
    for (const flat of coasts) {
      let seen = [];
      for (let i = 0; i < flat.length; i += 2) {
        const place = point(flat[i + 1] / 10, flat[i] / 10, turned);
        if (dot(place, near) > 0) seen.push(to(place));
        else { line(seen, coast, 1.2); seen = []; }
      }
      line(seen, coast, 1.2);
    }
    const sun = [1.02, 1.25].map((factor) => around.sun.map((x) => factor * EARTH_M * x));
    pen.globalAlpha = pieces(sun, true)[0].length ? 0.3 : 1;
    line(sun.map(to), "#8a5a00", 2);
    const end = to(sun[1]);
    pen.fillStyle = "#8a5a00"; pen.fillText("Sun", end[0] + 4 * unit, end[1] + 4 * unit);
    pen.globalAlpha = 1;
  }
  function circle(place, to, colour) {
    const path = [];
    for (let a = 0; a <= 360; a += 6) path.push(place(a));
    for (const piece of pieces(path, false)) line(piece.map(to), colour, 1);
  }
  // The part of the disc that is turned from the Sun: between the terminator and the limb.
  function night(to, middle, radius) {
    const [right, up, near] = view(), { one, two } = ring(around.sun);
    const flat = [dot(around.sun, right), dot(around.sun, up)], facing = Math.atan2(flat[1], -flat[0]);
    const circled = [];
    for (let a = 0; a < 360; a += 3)
      circled.push(sum(one.map((x) => x * EARTH_M * Math.cos(a * RAD)), two, EARTH_M * Math.sin(a * RAD)));
    const isSeen = circled.map((place) => dot(place, near) >= 0);
    const first = isSeen.findIndex((seen, i) => seen && !isSeen[(i + circled.length - 1) % circled.length]);
    if (first < 0) return;
    const edge = [];
    for (let i = first; isSeen[i % circled.length]; i++) edge.push(to(circled[i % circled.length]));
    const angle = (p) => Math.atan2(p[1] - middle[1], p[0] - middle[0]), turn = (x) => (x + 2 * FULL) % FULL;
    const begin = angle(edge[edge.length - 1]), end = angle(edge[0]);
    pen.fillStyle = "rgba(20,30,60,0.28)"; pen.beginPath();
    edge.forEach((p, i) => (i ? pen.lineTo(p[0], p[1]) : pen.moveTo(p[0], p[1])));
    pen.arc(middle[0], middle[1], radius, begin, end, turn(facing - begin) > turn(end - begin));
    pen.closePath(); pen.fill();
  }
  function ellipsoid(place, axes, colour, to) {
    for (const [a, b] of [[0, 1], [0, 2], [1, 2]]) {
      const path = [];
      for (let angle = 0; angle <= 360; angle += 6)
        path.push(to(sum(sum(place, axes[a], Math.cos(angle * RAD)), axes[b], Math.sin(angle * RAD))));
      line(path, colour, 1);
    }
  }
  function draw() {
    const t = seconds(), places = objects.map((o) => at(o.samples, t)), turned = around.earth_angle_rad + EARTH_RAD_S * t;
    const origin = centred ? places[0] : [0, 0, 0], to = projection(origin);
    const gap = Math.hypot(...sum(places[0], places[1], -1));
    pen.fillStyle = "#fff"; pen.fillRect(0, 0, canvas.width, canvas.height);
    earth(origin, turned);
    objects.forEach((object, i) => {
      const path = object.samples.map((s) => s.slice(1));
      pen.globalAlpha = 0.25;
      for (const piece of pieces(path, true)) line(piece.map(to), object.colour, 1.5);
      pen.globalAlpha = 1;
      for (const piece of pieces(path, false)) line(piece.map(to), object.colour, 2);
      ellipsoid(at(object.samples, 0), object.axes, object.colour, to);
      const [x, y] = to(places[i]);
      pen.fillStyle = object.colour; pen.beginPath(); pen.arc(x, y, 5 * unit, 0, FULL); pen.fill();
      // The names lie on either side of the pair, however near it is.
      pen.fillText(object.name, x + 9 * unit, y + (i ? 18 : -9) * unit);
    });
    const [x, y] = to(at(objects[0].samples, 0)), arm = 9 * unit;
    for (const sign of [1, -1]) line([[x - arm, y - sign * arm], [x + arm, y + sign * arm]], "#222", 1.5);
    pen.fillStyle = "#222"; pen.fillText("TCA", x - 40 * unit, y + 4 * unit);
    bar();
    const when = new Date(tca + 1000 * t).toISOString(), own = places[0];
    const latitude = Math.asin(own[2] / Math.hypot(...own)) / RAD;
    const longitude = ((Math.atan2(own[1], own[0]) - turned) / RAD + 1260) % 360 - 180;
    const ground = `${Math.abs(latitude).toFixed(1)}° ${latitude < 0 ? "S" : "N"}, `
      + `${Math.abs(longitude).toFixed(1)}° ${longitude < 0 ? "W" : "E"}`;
    shown.textContent = `${when}, TCA ${t < 0 ? "−" : "+"}${Math.abs(t).toFixed(2)} s, distance `
      + `${(gap / 1000).toFixed(3)} km, primary over ${ground}`;
  }
  // A length that a person can compare with.
  function bar() {
    const most = canvas.width / 4 / scale(), power = 10 ** Math.floor(Math.log10(most));
    const metres = [5, 2, 1].map((n) => n * power).find((n) => n <= most), width = metres * scale();
    const left = 12 * unit, low = canvas.height - 14 * unit;
    line([[left, low], [left + width, low]], "#222", 2);
    pen.fillStyle = "#222";
    pen.fillText(metres >= 1000 ? `${metres / 1000} km` : `${metres} m`, left, low - 6 * unit);
  }
  // As many points as the screen has, so that text is legible on a narrow one.
  function fit() {
    canvas.style.width = "100%";
    const wide = canvas.clientWidth;
    if (!wide) return;
    unit = window.devicePixelRatio || 1;
    canvas.width = Math.round(wide * unit);
    canvas.height = Math.round(Math.min(Math.max(wide * 0.6, 260), 620) * unit);
    pen.font = `${13 * unit}px sans-serif`;
    draw();
  }
  function look(atPair) {
    const [one, other] = objects.map((o) => at(o.samples, 0)), axes = objects.flatMap((o) => o.axes);
    const near = Math.max(500, 2 * Math.hypot(...sum(one, other, -1)), ...axes.map((axis) => 1.3 * Math.hypot(...axis)));
    centred = atPair; reach = atPair ? near : 1.1 * farthest(); draw();
  }
  const zoom = (factor) => { reach *= factor; draw(); };
  canvas.addEventListener("pointermove", (event) => {
    if (!event.buttons) return;
    yaw -= event.movementX / 150; pitch += event.movementY / 150; draw();
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault(); zoom(Math.exp(event.deltaY / 500));
  }, { passive: false });
  addEventListener("keydown", (event) => {
    if (event.target.matches("input[type=text], input[type=search], textarea, select")) return;
    if (event.key === "+" || event.key === "=") zoom(0.8);
    if (event.key === "-") zoom(1.25);
  });
  slider.addEventListener("input", draw);
  document.getElementById("whole").addEventListener("click", () => look(false));
  document.getElementById("pair").addEventListener("click", () => look(true));
  document.getElementById("play").addEventListener("click", () => {
    playing = !playing;
    (function step() {
      if (!playing) return;
      slider.value = Number(slider.value) >= 1000 ? -1000 : Number(slider.value) + 2;
      draw(); requestAnimationFrame(step);
    })();
  });
  addEventListener("resize", fit);
  reach = 1.1 * farthest();
  // The first view has the pair in front.
  const first = at(objects[0].samples, 0);
  yaw = Math.atan2(first[1], first[0]) + 0.35;
  pitch = Math.max(-0.9, Math.min(0.9, Math.asin(first[2] / Math.hypot(...first)) + 0.2));
  fit();
})();
