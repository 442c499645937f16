"""The display names for sessions: scientists, engineers, explorers and other discoverers.

All pairs differ by more than two edits, ignoring case, so a typo never turns one name into another.
"""

from __future__ import annotations

POOL: tuple[str, ...] = tuple(
    """
    Abel Adleman Aldrin Alhazen Alvarez Ampere Amundsen Apgar Archimedes Ashby Ashkin Asimov Atiyah Averroes
    Avicenna Avogadro Babbage Backus Banach Banting Bardeen Barents Barnard Basov Battuta Bayliss Beaufort
    Becquerel Behring Bengio Benioff Bernoulli Berzelius Bessel Bessemer Bhabha Bhaskara Binnig Biot
    Bjerknes Blalock Bleriot Bohr Boltzmann Bolzano Boole Bordet Borlaug Bourbaki Brahe Branly Brattain
    Brunel Buffon Bunsen Burbidge Buridan Burnell Cailliau Cajal Cantor Cardano Carnap Carson Carver Casimir
    Cassini Cauchy Cavendish Celsius Cerf Chadwick Chagas Chandra Chargaff Charney Charpak Chebyshev
    Cherenkov Clausius Cockcroft Compton Conway Coulomb Cournot Cousteau Crick Croll Crutzen Curie Daguerre
    Dalton Dantzig Darwin Dedekind Descartes Diffie Dijkstra Dirac Doudna Dubos Dufay Dyson Earhart Eccles
    Eckert Ehrlich Eiffel Einstein Elion Enders Engelbart Englert Erdos Esaki Euclid Euler Ewing Faraday
    Fermi Fibonacci Fizeau Fleming Flerov Florey Foucault Fourier Franklin Fraunhofer Frege Fresnel Gagarin
    Galen Galileo Galois Galvani Gassendi Gauss Geiger Geim Gentzen Gerlach Germain Gibbs Glashow Godel
    Goeppert Golgi Goodall Grignard Guerin Haar Hadamard Haldane Halley Hamilton Hardy Haroche Harsanyi
    Hartline Hawking Helmholtz Hermite Herschel Hertz Hevesy Higgs Hilbert Hillary Hodgkin Hofmann Hopcroft
    Hopfield Hopper Hubble Huffman Humboldt Hurwitz Huygens Hypatia Imhotep Iwasaki Jacobi Jacquard Janssen
    Jazari Jemison Jenner Kajita Kaplan Kariko Keeling Kekule Kelvin Kendrew Kernighan Ketterle Keynes
    Khayyam Khorana Kilby Kindi Kircher Kirchhoff Kitasato Kleene Knowles Knuth Kobayashi Kolmogorov
    Koopmans Kornberg Korolev Kramers Kroto Kummer Kuznets Lagrange Lamarck Lamport Lampson Landau Langevin
    Laplace Laveran Lavoisier Leakey Leavitt Lebesgue Lederman Legendre Leibniz Leonov Leontief Liebig
    Lifshitz Liskov Lister Lockyer Lorentz Lotka Lovelace Lumiere Lwoff Lyapunov Lyell Maathai Maclane
    Madhava Manabe Marconi Margulis Markov Maturana Maxwell Mayer McCarthy McMillan Meitner Mendel Mendeleev
    Mercalli Merkle Mersenne Meselson Messier Metcalfe Micali Michelson Milnor Moivre Monod Morita Moseley
    Mott Mourou Munk Nagaoka Nakamura Nambu Negishi Neumann Newcomen Newell Newton Niepce Noether Noguchi
    Nollet Noyce Noyori Nyquist Oberth Ochoa Oersted Omura Onnes Onsager Oparin Oresme Ostrom Pascal Pasteur
    Pauli Pavlov Peano Peebles Penrose Penzias Perelman Perlis Piaget Piccard Planck Plotkin Plucker
    Poincare Poisson Politzer Polya Poncelet Popov Postel Prandtl Priestley Ptolemy Pythagoras Ramanujan
    Rankine Rayleigh Revelle Reynolds Ricardo Richter Riemann Ritchie Rivest Roebling Roentgen Rozycki Rubin
    Rutherford Sabatier Sagan Sakharov Salk Sandage Sarabhai Savart Schwann Seaborg Seacole Secchi Sechenov
    Selten Shamir Shannon Shen Sifakis Sikorsky Sircar Skolem Slipher Smeaton Sobrero Soddy Somerville
    Stirling Stokes Strabo Stroustrup Struve Sturm Synge Takamine Tarski Telford Tenzing Thacker Tharp
    Thoreau Thorne Thurston Tiselius Tombaugh Tomonaga Torricelli Torvalds Toyoda Turing Tyndall Ulam Ullman
    Urey Valiant Vapnik Varela Veltman Ventris Vesalius Vieta Virchow Volterra Vygotsky Waals Weinberg
    Weissman Wheeler Wiesel Wigner Wilczek Wiles Wineland Wirth Wittig Wohler Wright Yalow Yersin Yonath
    Yukawa Zadeh Zeeman Zermelo Zernike Zhang Ziegler Zuse Zwicky Zworykin Zygalski
    """.split()  # noqa: SIM905 - a list literal would be four times as many lines
)
