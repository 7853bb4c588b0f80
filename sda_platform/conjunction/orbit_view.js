// An interactive view of two orbits about TCA, drawn from CZML on a canvas, without any other file.
(function () {
  "use strict";
  const packets = JSON.parse(document.getElementById("czml").textContent);
  const canvas = document.getElementById("orbits"), pen = canvas.getContext("2d");
  const slider = document.getElementById("time"), shown = document.getElementById("when");
  const EARTH_M = 6378137, tca = Date.parse(packets[0].clock.currentTime);
  const objects = packets.slice(1).map((packet) => {
    const flat = packet.position.cartesian, samples = [];
    for (let i = 0; i < flat.length; i += 4) samples.push(flat.slice(i, i + 4));
    return { name: packet.name, colour: `rgb(${packet.point.color.rgba.slice(0, 3)})`, samples };
  });
  const half = objects[0].samples[objects[0].samples.length - 1][0];
  let yaw = 0.6, pitch = 0.5, reach = 0, centred = false, playing = false;

  function at(samples, t) {
    let high = samples.findIndex((sample) => sample[0] >= t);
    if (high <= 0) high = 1;
    const a = samples[high - 1], b = samples[high], part = (t - a[0]) / (b[0] - a[0]);
    return [1, 2, 3].map((axis) => a[axis] + part * (b[axis] - a[axis]));
  }
  // The slider is finest at TCA, as the samples are.
  const seconds = () => half * Math.sign(slider.value) * Math.abs(slider.value / 1000) ** 3;
  const farthest = () => Math.max(...objects.flatMap((o) => o.samples.map((s) => Math.hypot(s[1], s[2], s[3]))));

  function project(place, origin) {
    const x = place[0] - origin[0], y = place[1] - origin[1], z = place[2] - origin[2];
    const u = -Math.sin(yaw) * x + Math.cos(yaw) * y;
    const w = Math.cos(yaw) * x + Math.sin(yaw) * y;
    const v = Math.cos(pitch) * z - Math.sin(pitch) * w;
    const depth = Math.sin(pitch) * z + Math.cos(pitch) * w;
    const scale = canvas.height / 2.2 / reach;
    return [canvas.width / 2 + scale * u, canvas.height / 2 - scale * v, depth];
  }
  function line(points, colour, width) {
    pen.strokeStyle = colour; pen.lineWidth = width; pen.beginPath();
    points.forEach((p, i) => (i ? pen.lineTo(p[0], p[1]) : pen.moveTo(p[0], p[1])));
    pen.stroke();
  }
  function earth(origin) {
    const middle = project([0, 0, 0], origin), radius = canvas.height / 2.2 / reach * EARTH_M;
    if (radius > 20 * canvas.width) return;
    pen.fillStyle = "rgba(120,160,200,0.25)"; pen.beginPath();
    pen.arc(middle[0], middle[1], radius, 0, 2 * Math.PI); pen.fill();
    for (let degree = -60; degree <= 60; degree += 30) {
      const ring = [];
      for (let a = 0; a <= 360; a += 6) ring.push(point(degree, a));
      line(ring.map((p) => project(p, origin)), "rgba(90,120,150,0.4)", 1);
    }
    for (let a = 0; a < 180; a += 30) {
      const ring = [];
      for (let d = 0; d <= 360; d += 6) ring.push(point(d, a));
      line(ring.map((p) => project(p, origin)), "rgba(90,120,150,0.4)", 1);
    }
  }
  function point(latitude, longitude) {
    const f = Math.PI / 180, c = Math.cos(latitude * f);
    return [EARTH_M * c * Math.cos(longitude * f), EARTH_M * c * Math.sin(longitude * f), EARTH_M * Math.sin(latitude * f)];
  }
  function draw() {
    const t = seconds(), places = objects.map((o) => at(o.samples, t));
    const origin = centred ? places[0] : [0, 0, 0];
    const gap = Math.hypot(...places[0].map((x, i) => x - places[1][i]));
    pen.fillStyle = "#fff"; pen.fillRect(0, 0, canvas.width, canvas.height);
    earth(origin);
    objects.forEach((object, i) => {
      line(object.samples.map((s) => project(s.slice(1), origin)), object.colour, 1.5);
      const [x, y] = project(places[i], origin);
      pen.fillStyle = object.colour; pen.beginPath(); pen.arc(x, y, 5, 0, 2 * Math.PI); pen.fill();
      pen.fillText(object.name, x + 8, y - 8 + 16 * i);
    });
    const when = new Date(tca + 1000 * t).toISOString();
    shown.textContent = `${when}, TCA ${t < 0 ? "−" : "+"}${Math.abs(t).toFixed(2)} s, distance ${(gap / 1000).toFixed(3)} km`;
  }
  function look(atPair) {
    centred = atPair; reach = atPair ? 20000 : 1.1 * farthest(); draw();
  }
  canvas.addEventListener("pointermove", (event) => {
    if (!event.buttons) return;
    yaw -= event.movementX / 150; pitch += event.movementY / 150; draw();
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault(); reach *= Math.exp(event.deltaY / 500); draw();
  }, { passive: false });
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
  pen.font = "13px sans-serif";
  look(false);
})();
