module.exports = () => "works";
